"""Tokens that say what they are: the prefixes that vendors put before their credentials.

Each row is found by its literal prefix (a substring search, so the rows that are absent cost
microseconds) and confirmed by one bounded class of characters after it. Only the least length is stated:
vendors lengthen their tokens, and a longer one is as secret. Short prefixes also ask for a digit, because
words begin like them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from temporality.actors.redaction.finding import Finding, Source, positions

_WORD = r"[A-Za-z0-9_]"
_DASHED = r"[A-Za-z0-9_\-]"
_DOTTED = r"[A-Za-z0-9_\-.]"
_BASE64 = r"[A-Za-z0-9+/_=\-]"


@dataclass(frozen=True, slots=True)
class Vendor:
    """One kind of token: any of `prefixes`, then at least `least` characters of the class `body`."""

    kind: str
    prefixes: tuple[str, ...]
    body: str
    least: int
    digit: bool = False

    def pattern(self) -> re.Pattern[str]:
        """Compile what must follow a prefix."""
        return re.compile(rf"{self.body}{{{self.least},}}+")


VENDORS = (
    Vendor("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _WORD, 16),
    Vendor("github-token", ("github_pat_",), _WORD, 16),
    Vendor(
        "gitlab-token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-", "gloas-"),
        _DOTTED,
        12,
    ),
    Vendor(
        "slack-token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-"),
        r"[A-Za-z0-9%\-]",
        10,
    ),
    Vendor("slack-token", ("xoxe.xox", "xoxe-", "xapp-"), r"[A-Za-z0-9.\-]", 10),
    Vendor("slack-token", ("hooks.slack.com/services/", "hooks.slack.com/workflows/"), r"[A-Za-z0-9/]", 12),
    Vendor("stripe-key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_"), _WORD, 10),
    Vendor("stripe-key", ("whsec_",), _BASE64, 12),
    Vendor("anthropic-key", ("sk-ant-",), _DASHED, 12),
    Vendor(
        "openai-key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sess-"), _DASHED, 16, digit=True
    ),
    Vendor("openai-key", ("sk-",), _DASHED, 20, digit=True),
    Vendor("aws-key", ("AKIA", "ASIA", "AROA", "AIDA", "ABIA", "ACCA"), r"[A-Z0-9]", 16),
    Vendor("google-key", ("AIza",), _DASHED, 30),
    Vendor("google-key", ("ya29.",), _DOTTED, 16),
    Vendor("google-key", ("GOCSPX-",), _DASHED, 16),
    Vendor("google-key", ("1//0",), _DASHED, 30),
    Vendor("npm-token", ("npm_",), r"[A-Za-z0-9]", 24, digit=True),
    Vendor("pypi-token", ("pypi-",), _DASHED, 24),
    Vendor("hugging-face-token", ("hf_", "api_org_"), r"[A-Za-z0-9]", 20),
    Vendor("sendgrid-key", ("SG.",), _DOTTED, 20, digit=True),
    Vendor("twilio-key", ("SK",), r"[0-9a-f]", 32),
    Vendor("mailgun-key", ("key-",), r"[0-9a-z]", 32),
    Vendor("mailchimp-key", ("md-",), _DASHED, 22, digit=True),
    Vendor("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"[0-9a-f]", 24),
    Vendor("databricks-token", ("dapi",), r"[0-9a-f\-]", 24),
    Vendor("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_"), _WORD, 16),
    Vendor("square-token", ("sq0atp-", "sq0csp-", "sq0idp-", "EAAA"), _DASHED, 16, digit=True),
    Vendor("linear-key", ("lin_api_", "lin_oauth_"), _WORD, 16),
    Vendor("notion-token", ("ntn_",), _WORD, 20),
    Vendor("notion-token", ("secret_",), r"[A-Za-z0-9]", 32, digit=True),
    Vendor("atlassian-token", ("ATATT", "ATCTT", "ATBB"), _BASE64, 16, digit=True),
    Vendor("docker-token", ("dckr_pat_", "dckr_oat_"), _DASHED, 16),
    Vendor("vault-token", ("hvs.", "hvb.", "hvr."), _DASHED, 16),
    Vendor("supabase-key", ("sbp_", "sb_secret_"), _WORD, 16),
    Vendor("grafana-token", ("glsa_", "glc_"), _BASE64, 20, digit=True),
    Vendor("new-relic-key", ("NRAK-", "NRJS-", "NRII-", "NRAL-"), _DASHED, 16),
    Vendor("age-key", ("AGE-SECRET-KEY-1",), r"[A-Z0-9]", 30),
    Vendor("planetscale-token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"), _DOTTED, 16),
    Vendor("postman-key", ("PMAK-",), _DASHED, 24),
    Vendor("pulumi-token", ("pul-",), r"[0-9a-f]", 24),
    Vendor("doppler-token", ("dp.pt.", "dp.st.", "dp.ct."), _DOTTED, 20),
    Vendor("dropbox-token", ("sl.",), _DASHED, 60, digit=True),
    Vendor("figma-token", ("figd_", "figu_"), _DASHED, 20),
    Vendor("airtable-token", ("pat",), r"[A-Za-z0-9]{14}\.[A-Za-z0-9]", 32),
    Vendor("asana-token", ("1/",), r"[0-9]{12,20}:[0-9a-f]", 24),
    Vendor("sentry-token", ("sntrys_", "sntryu_"), _BASE64, 20),
    Vendor("groq-key", ("gsk_",), r"[A-Za-z0-9]", 24, digit=True),
    Vendor("replicate-token", ("r8_",), r"[A-Za-z0-9]", 24, digit=True),
    Vendor("xai-key", ("xai-",), r"[A-Za-z0-9]", 32, digit=True),
    Vendor("perplexity-key", ("pplx-",), r"[A-Za-z0-9]", 24, digit=True),
    Vendor("tailscale-key", ("tskey-",), _DASHED, 16, digit=True),
    Vendor("terraform-token", (".atlasv1.",), _DASHED, 40),
    Vendor("heroku-key", ("HRKU-",), _DASHED, 30),
    Vendor("rubygems-key", ("rubygems_",), r"[0-9a-f]", 32),
    Vendor("cargo-token", ("cio",), r"[A-Za-z0-9]", 32, digit=True),
    Vendor("cloudflare-token", ("cfut_", "cfat_", "v1.0-"), _DASHED, 30, digit=True),
    Vendor("facebook-token", ("EAAC", "EAAG", "EAAB"), r"[A-Za-z0-9]", 40, digit=True),
    Vendor("azure-key", ("7Q~", "8Q~"), r"[A-Za-z0-9~_.\-]", 28),
    Vendor(
        "discord-token", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"), r"[A-Za-z0-9_/\-]", 24
    ),
    Vendor("telegram-token", ("api.telegram.org/bot",), r"[A-Za-z0-9_:\-]", 20),
)

TOKEN_LENGTH_MIN = 15
"""Shortest token with its prefix: runs of token characters that are shorter are not searched."""

_LONG_RUN = re.compile(rf"[A-Za-z0-9_\-.~%/:+=]{{{TOKEN_LENGTH_MIN},}}+")
_COMPILED = tuple((vendor, vendor.pattern()) for vendor in VENDORS)

# Tokens without a prefix, told by their inner shape: (kind, a literal every one holds, pattern around it).
_TELEGRAM = re.compile(
    r"(?:(?<![A-Za-z0-9_\-])|(?<=\\n))[0-9]{8,10}:[A-Za-z0-9_\-]{34,36}+(?![A-Za-z0-9_\-])"
)
_DISCORD = re.compile(
    r"(?:(?<![A-Za-z0-9_\-.])|(?<=\\n))[MNO][A-Za-z0-9_\-]{22,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{26,40}+"
)
_JWT = re.compile(r"eyJ[A-Za-z0-9_\-]{5,}+(?:\.[A-Za-z0-9_\-]*+){1,4}+")
_COMMON_IN_BASE64 = ("cio", "pat", "dap")
_ESCAPE_BEFORE = re.compile(r"(?:\\[nrtfbv]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})\Z")


def starts_word(text: str, position: int) -> bool:
    """Say whether a token can begin at `position`: after no letter or digit, escapes apart (`%3D`)."""
    before = text[position - 1] if position else " "
    if before in "/+" and text[position : position + 3] in _COMMON_IN_BASE64:
        return False
    if not (before.isascii() and before.isalnum()):
        return True
    return _ESCAPE_BEFORE.search(text, max(0, position - 6), position) is not None


def find_vendor_tokens(source: Source) -> Iterator[Finding]:
    """Yield every token with a vendor's prefix or shape."""
    text = source.text
    long_runs = "\n".join(_LONG_RUN.findall(text))
    for vendor, pattern in _COMPILED:
        for prefix in vendor.prefixes:
            if prefix not in long_runs:
                continue
            done = 0
            for at in positions(text, prefix):
                # What was matched once is not matched again from inside: the work stays linear.
                found = pattern.match(text, at + len(prefix)) if at >= done else None
                if found is None:
                    continue
                if prefix[0].isalnum() and len(prefix) < 12 and not starts_word(text, at):
                    continue
                done = found.end()
                if not vendor.digit or any(char.isdigit() for char in found[0]):
                    yield Finding(vendor.kind, *_without_trailing(text, at, done))
    if "eyJ" in text:
        yield from _jwts(text)
    if ":" in text:
        yield from (Finding("telegram-token", *found.span()) for found in _around(text, ":", 11, _TELEGRAM))
    if "." in text:
        yield from (Finding("discord-token", *found.span()) for found in _around(text, ".", 28, _DISCORD))


def _jwts(text: str) -> Iterator[Finding]:
    done = 0
    for at in positions(text, "eyJ"):
        if at < done or not starts_word(text, at):
            continue
        found = _JWT.match(text, at)
        if found is not None:
            done = found.end()
            if len(found[0].rstrip(".")) >= 20:
                yield Finding("jwt", *_without_trailing(text, at, done))


def _around(text: str, literal: str, reach: int, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield matches of `pattern` whose first `literal` lies at most `reach` characters after their begin."""
    if len(text) < 40:
        window = pattern.search(text)
        if window is not None:
            yield window
        return
    done = 0
    for at in positions(text, literal):
        # A token's next 24 characters hold no space: most colons and full stops are dismissed here.
        if at < done or not text[at + 1 : at + 6].replace("_", "a").replace("-", "a").isalnum():
            continue
        found = pattern.search(text, max(done, at - reach), at + 80)
        if found is not None:
            done = found.end()
            yield found


def _without_trailing(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave the punctuation that ends a sentence outside."""
    while end > start and text[end - 1] in ".-":
        end -= 1
    return start, end
