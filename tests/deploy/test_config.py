"""Defaults, then a file, then the environment; and every mistake says where it is and what to do."""

from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from temporality.deploy.config import (
    _OVERRIDES,
    CHILD_VARIABLE,
    CRASH_VARIABLE,
    PREFIX,
    Config,
    Environment,
    handed_down,
    load_config,
    taken_over,
)
from temporality.deploy.yaml_file import read_yaml
from temporality.protocol.errors import UserError

FILE = """\
data_dir: from-file
nats: {url: "nats://file:4222", replicas: 3, embedded: {sync: default, port: 4000}}
partitions: 8
lease_ttl_s: 2.5
executor: {allow_commands: [git], allow_python: [shop], start_timeout_s: 9}
otel: {endpoint: "http://file:4318"}
"""

OVERRIDES: dict[str, tuple[str, tuple[str, ...], object]] = {
    "DATA_DIR": ("elsewhere", ("data_dir",), "elsewhere"),
    "NATS_URL": ("nats://env:4222", ("nats", "url"), "nats://env:4222"),
    "NATS_SYNC": ("always", ("nats", "embedded", "sync"), "always"),
    "NATS_PORT": ("4333", ("nats", "embedded", "port"), 4_333),
    "NATS_REPLICAS": ("5", ("nats", "replicas"), 5),
    "PARTITIONS": ("32", ("partitions",), 32),
    "LEASE_TTL_S": ("1.5", ("lease_ttl_s",), 1.5),
    "ALLOW_COMMANDS": ("git,uvx", ("executor", "allow_commands"), ("git", "uvx")),
    "ALLOW_PYTHON": ("shop:book,desk", ("executor", "allow_python"), ("shop:book", "desk")),
    "START_TIMEOUT_S": ("60", ("executor", "start_timeout_s"), 60.0),
    "OTEL_ENDPOINT": ("http://env:4318", ("otel", "endpoint"), "http://env:4318"),
}

WRONG = {
    "NATS_SYNC": ("allways", "did you mean 'always'?"),
    "NATS_PORT": ("70000", "write a whole number from 0 up to 65535"),
    "NATS_REPLICAS": ("three", "write a whole number from 1 up to 5"),
    "PARTITIONS": ("0", "write a whole number from 1 up to 1024"),
    "LEASE_TTL_S": ("1,5", "write a number from 0.5 up to 60"),
    "START_TIMEOUT_S": ("true", "write a number above 0 up to 600"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty current folder."""
    with chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def file(folder: Path) -> Path:
    """A file that sets every key."""
    path = folder / "other.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def loaded(path: Path | None = None) -> Config:
    return load_config(Environment({}), path)


def with_variable(name: str, text: str, path: Path | None = None) -> Config:
    return load_config(Environment({PREFIX + name: text}), path)


def refused(load: Callable[[], Config]) -> UserError:
    with pytest.raises(UserError) as raised:
        load()
    return raised.value


def value(config: Config, keys: tuple[str, ...]) -> object:
    found: object = config
    for key in keys:
        found = getattr(found, key)
    return found


# --- precedence -------------------------------------------------------------------------------------------


def test_without_file_and_environment_the_defaults_hold() -> None:
    assert loaded() == Config()


def test_file_of_the_current_folder_is_read_if_it_is_there(folder: Path) -> None:
    (folder / "temporality.yaml").write_text("partitions: 8", encoding="utf-8")
    assert loaded() == Config(partitions=8)


def test_file_that_is_named_is_read_instead_of_that_of_the_folder(folder: Path, file: Path) -> None:
    (folder / "temporality.yaml").write_text("partitions: 4\nlease_ttl_s: 1", encoding="utf-8")
    assert loaded(file).partitions == 8
    assert loaded(file).lease_ttl_s == 2.5


def test_empty_file_changes_nothing(folder: Path) -> None:
    (folder / "temporality.yaml").write_text("# nothing yet\n", encoding="utf-8")
    assert loaded() == Config()


def test_every_override_is_tried_here() -> None:
    assert {name: keys for name, (_, keys, _) in OVERRIDES.items()} == _OVERRIDES


@pytest.mark.parametrize("name", OVERRIDES)
def test_variable_goes_before_the_file_and_the_file_before_the_default(name: str, file: Path) -> None:
    text, keys, expected = OVERRIDES[name]
    default, from_file = value(Config(), keys), value(loaded(file), keys)
    assert len({default, from_file, expected}) >= 2
    assert from_file != default
    assert value(with_variable(name, text, file), keys) == expected
    assert value(with_variable(name, text), keys) == expected


def test_variable_changes_its_own_key_only(file: Path) -> None:
    config, changed = loaded(file), with_variable("NATS_PORT", "4333", file)
    assert changed.nats.embedded.port == 4_333
    assert changed.nats.embedded.sync == config.nats.embedded.sync == "default"
    assert (changed.nats.url, changed.partitions, changed.otel) == (
        config.nats.url,
        config.partitions,
        config.otel,
    )


def test_empty_list_of_commands_forbids_all_and_no_list_says_nothing() -> None:
    assert with_variable("ALLOW_COMMANDS", "").executor.allow_commands == ()
    assert with_variable("ALLOW_PYTHON", "").executor.allow_python == ()
    assert (loaded().executor.allow_commands, loaded().executor.allow_python) == (None, None)


def test_other_variables_are_nobody_s_business() -> None:
    environment = Environment({"PATH": "/bin", "TEMPORALITY_DATA": "x", "OPENAI_API_KEY": "secret"})
    assert load_config(environment) == Config()


def test_crash_point_is_read_from_the_environment_and_is_empty_by_default() -> None:
    assert Environment({CRASH_VARIABLE: "executor.acked:2"}).crash_at == "executor.acked:2"
    assert Environment({}).crash_at == ""


# --- mistakes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRONG)
def test_wrong_variable_is_named_with_what_to_write(name: str, file: Path) -> None:
    text, do = WRONG[name]
    error = refused(lambda: with_variable(name, text, file))
    path = ".".join(OVERRIDES[name][1])
    assert (error.where, error.do) == (f"environment variable TEMPORALITY_{name}: $.{path}", do)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PARTITION", "PARTITIONS"),
        ("NATSURL", "NATS_URL"),
        ("LEASE_TTL", "LEASE_TTL_S"),
        ("CRASHAT", "CRASH_AT"),
    ],
)
def test_mistyped_variable_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    error = refused(lambda: with_variable(name, "8"))
    assert error.where == f"environment variable TEMPORALITY_{name}"
    assert error.do == f"did you mean TEMPORALITY_{meant}?"


def test_mistake_in_the_file_is_the_file_s_also_if_a_variable_hides_it(file: Path) -> None:
    file.write_text("partitions: many", encoding="utf-8")
    assert refused(lambda: with_variable("PARTITIONS", "8", file)).where == f"{file}: $.partitions"


@pytest.mark.parametrize(
    ("text", "where", "do"),
    [
        ("partition: 8", "$", "did you mean 'partitions'?"),
        ("nats: {embedded: {snc: always}}", "$.nats.embedded", "did you mean 'sync'?"),
        ("executor: {allow_commands: git}", "$.executor.allow_commands", "write a list"),
        ("nats:", "$.nats", "write a mapping with the keys url, embedded, replicas, or leave it out"),
        ("- partitions", "$", "write a mapping with the keys"),
    ],
)
def test_wrong_key_or_value_in_the_file_is_named(file: Path, text: str, where: str, do: str) -> None:
    file.write_text(text, encoding="utf-8")
    error = refused(lambda: loaded(file))
    assert error.where == f"{file}: {where}"
    assert error.do.startswith(do)


def test_file_that_is_named_must_exist(folder: Path) -> None:
    error = refused(lambda: loaded(folder / "missing.yaml"))
    assert error.where == str(folder / "missing.yaml")
    assert "No such file" in error.what


def test_folder_is_no_file(folder: Path) -> None:
    assert "directory" in refused(lambda: loaded(folder)).what


# --- YAML -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: [1\n", 3, "is not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "is not valid YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' stands here twice"),
        ("x:\n  b: 1\n  c: {d: 1, d: 1}\n", 3, "the key 'd' stands here twice"),
        ("? [a, b]\n: c\n", 1, "is not valid YAML"),
        ("a: !!python/object:os.system {}\n", 1, "is not valid YAML"),
        ("a: *nothing\n", 1, "is not valid YAML"),
    ],
)
def test_fault_in_yaml_is_named_with_its_line(file: Path, text: str, line: int, what: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as raised:
        read_yaml(file)
    assert raised.value.where == f"{file}:{line}"
    assert what in raised.value.what


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        "имя: 1".encode("cp1251"),
        b"a: \x00",
        b"a: " + b"[" * 5_000,
        b"a: !!int x",
    ],
)
def test_bytes_that_are_no_yaml_are_a_user_s_mistake(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(UserError) as raised:
        read_yaml(file)
    assert raised.value.where.startswith(str(file))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: 2024-13-45", {"a": "2024-13-45"}),
        ("a: !!timestamp soon", {"a": "soon"}),
        ("1: a", {1: "a"}),
        ("a: ${NAME}", {"a": "${NAME}"}),
        ("base: &b {x: 1}\na: {<<: *b, y: 2}", {"base": {"x": 1}, "a": {"x": 1, "y": 2}}),
        ("base: &b {x: 1}\na: {<<: *b, x: 2}", {"base": {"x": 1}, "a": {"x": 2}}),
        ("", None),
    ],
)
def test_what_yaml_would_guess_is_left_as_it_was_written(file: Path, text: str, expected: object) -> None:
    file.write_text(text, encoding="utf-8")
    assert read_yaml(file) == expected


# --- children ---------------------------------------------------------------------------------------------


def test_child_has_its_parent_s_configuration_at_the_parent_s_server(file: Path, folder: Path) -> None:
    config = loaded(file)
    variables = handed_down(config, {"KEPT": "yes"}, "nats://user:password@127.0.0.1:4222")
    taken, environment = taken_over(variables)
    assert taken.nats.url == "nats://user:password@127.0.0.1:4222"
    assert taken.data_path == folder / "from-file"
    assert (taken.partitions, taken.executor, taken.otel) == (config.partitions, config.executor, config.otel)
    assert dict(environment.variables) == {"KEPT": "yes"}
    assert CHILD_VARIABLE not in environment.variables
