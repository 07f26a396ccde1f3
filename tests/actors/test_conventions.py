"""Names of spans and attributes are those of the pinned conventions, and none of them holds content."""

from importlib.metadata import version

from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, messaging_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas

from temporality.actors import conventions

MODULES = (gen_ai_attributes, messaging_attributes, error_attributes)
CONTENT = (
    "messages",
    "prompt",
    "completion",
    "instructions",
    "arguments",
    "result",
    "text",
    "documents",
    "definitions",
    "description",
)


def pinned_attributes() -> set[str]:
    return {
        value
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }


def pinned_operations() -> set[str]:
    kinds = (
        gen_ai_attributes.GenAiOperationNameValues,
        messaging_attributes.MessagingOperationTypeValues,
    )
    return {member.value for kind in kinds for member in kind}


def constants() -> list[str]:
    ignored = {"CONVENTIONS_VERSION", "SCHEMA_URL", "INSTRUMENTATION", "MESSAGING_SYSTEM_NATS"}
    return [
        value
        for name, value in vars(conventions).items()
        if name.isupper() and isinstance(value, str) and name not in ignored
    ]


def test_conventions_are_those_of_the_installed_package() -> None:
    assert version("opentelemetry-semantic-conventions") == conventions.CONVENTIONS_VERSION
    assert max((schema.value for schema in Schemas), key=_schema_version) == conventions.SCHEMA_URL


def _schema_version(url: str) -> tuple[int, ...]:
    return tuple(int(part) for part in url.rpartition("/")[2].split("."))


def test_names_marked_as_pinned_are_in_the_conventions_and_ours_are_under_our_own_prefix() -> None:
    attributes, operations = pinned_attributes(), pinned_operations()
    for entry in conventions.ATTRIBUTES:
        assert entry.pinned == (entry.name in attributes), entry.name
        assert entry.pinned or entry.name.startswith("temporality."), entry.name
    for entry in conventions.SPANS:
        assert entry.pinned == (entry.name in operations), entry.name


def test_every_name_is_listed_once_with_its_meaning() -> None:
    listed = [entry.name for entry in (*conventions.SPANS, *conventions.ATTRIBUTES)]
    assert sorted(listed) == sorted(constants())
    assert len(set(listed)) == len(listed)
    assert all(entry.meaning for entry in (*conventions.SPANS, *conventions.ATTRIBUTES))


def test_no_attribute_is_meant_for_content() -> None:
    """A47"""
    for entry in conventions.ATTRIBUTES:
        last = entry.name.rpartition(".")[2]
        assert last not in CONTENT or entry.name == conventions.RETRIEVAL_RESULT, entry.name


def test_ids_that_are_not_redacted_are_attributes_of_ours_by_name() -> None:
    assert {entry.name for entry in conventions.ATTRIBUTES} >= conventions.DERIVED_IDS
    assert all(name.rpartition(".")[2] in ("id", "key") for name in conventions.DERIVED_IDS)
