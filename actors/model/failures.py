"""What an HTTP answer that is no reply means: the failure's class, whether trying again helps, what to do.

One table for every provider that speaks HTTP, and for the scripted one that imitates them.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from temporality.actors.model.provider import CallFailed, ErrorClass, Retry

RETRY_AFTER_MAX_S: Final = 86_400.0
"""A server that asks for more than a day is not believed: a timer of ours must fire in reasonable time."""

_BY_STATUS: Final[dict[int, tuple[ErrorClass, Retry, str]]] = {
    400: ("refused", "never", "read the provider's message; `model.params` and the model's name are likely"),
    401: ("unauthorized", "never", "check the key that `model.api_key` refers to"),
    402: ("refused", "never", "check the account's credit with the provider"),
    403: ("unauthorized", "never", "check that the key may use this model"),
    404: ("refused", "never", "check `model.name` and `model.base_url`"),
    408: ("timeout", "backoff", ""),
    409: ("provider_error", "backoff", ""),
    413: ("refused", "never", "the history is too large for this provider; lower `limits.reply_bytes_max`"),
    422: ("refused", "never", "read the provider's message; `model.params` are likely"),
    425: ("provider_error", "backoff", ""),
    429: ("rate_limited", "backoff", ""),
}
_NO_CREDIT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


def status_failure(
    status: int, *, message: str, code: str | None, headers: Mapping[str, str], now: datetime
) -> CallFailed:
    """Return the failure that an answer with this status, error code and headers is."""
    if status in _BY_STATUS:
        error_class, retry, do = _BY_STATUS[status]
    elif status >= 500:
        error_class, retry, do = "provider_error", "backoff", ""
    else:
        error_class, retry, do = "provider_error", "never", "check `model.base_url`"
    if code in _NO_CREDIT:
        error_class, retry, do = _BY_STATUS[402]
    if headers.get("x-should-retry") == "false":
        retry = "never"
    return CallFailed(
        error_class,
        f"HTTP {status}: {message}",
        retry=retry,
        retry_after_s=retry_after_s(headers, now) if retry == "backoff" else None,
        do=do,
    )


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that `Retry-After` asks to wait (RFC 9110 10.2.3), None without a usable one.

    `retry-after-ms`, which some providers send beside it, is finer and goes first. Header names are lower
    case.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return _bounded(seconds)
    try:
        moment = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _bounded((moment - now).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), RETRY_AFTER_MAX_S)
