"""A30, A31: what a fingerprint takes for the same situation, and what it must keep apart."""

import itertools

import pytest

from temporality.protocol.fingerprint import KEY_STEPS, NORMALIZE_STEPS, normalize, situation_key
from temporality.protocol.fingerprint.step import Step


def key(text: str) -> str:
    """Return the key of a failed call of one tool with this diagnostic."""
    return situation_key(trigger="tool.failed", source="shell", error_class="tool_error", text=text)


@pytest.mark.parametrize("step", NORMALIZE_STEPS, ids=lambda step: step.name)
def test_each_step_does_to_its_example_what_the_document_says(step: Step) -> None:
    assert normalize(step.before) == step.after


@pytest.mark.parametrize("step", NORMALIZE_STEPS, ids=lambda step: step.name)
def test_each_step_is_needed_for_its_own_example(step: Step) -> None:
    text = step.before
    for other in NORMALIZE_STEPS:
        if other is not step:
            text = other.apply(text)
    assert text.strip() != step.after


@pytest.mark.parametrize("step", KEY_STEPS, ids=lambda step: step.name)
def test_each_step_to_the_key_does_to_its_example_what_the_document_says(step: Step) -> None:
    text = step.before
    for each in KEY_STEPS:
        text = each.apply(text)
    assert text == step.after


def test_eleven_not_found_with_eleven_paths_are_one_situation_and_permission_denied_is_another() -> None:
    not_found = {key(f"cat: /srv/data/{name}.csv: No such file or directory") for name in "abcdefghijk"}
    assert len(not_found) == 1
    assert key("cat: /srv/data/a.csv: Permission denied") not in not_found


SAME = {
    "python memory address": (
        "TypeError: <app.Job object at 0x7f11aa20> is not callable",
        "TypeError: <app.Job object at 0x55d0be10c4f8> is not callable",
    ),
    "python traceback": (
        'File "/tmp/tmpab12/run.py", line 12, in main\n    load(x)\nValueError: bad row 3',
        'File "/tmp/tmpzz9/run.py", line 340, in main\n    load(x)\nValueError: bad row 4711',
    ),
    "node stack": (
        "Error: boom\n    at load (/home/ann/app/a.js:12:15)",
        "Error: boom\n    at load (/srv/app/b.js:9:1)",
    ),
    "go panic": (
        "panic: nil map\ngoroutine 17 [running]:\nmain.f(0xc0000b2000)\n\t/src/a.go:10 +0x1d",
        "panic: nil map\ngoroutine 1 [running]:\nmain.f(0xc0000a1008)\n\t/src/a.go:77 +0xff",
    ),
    "git path": (
        "error: pathspec 'feature/login' did not match any file(s) known to git",
        "error: pathspec 'fix' did not match any file(s) known to git",
    ),
    "git remote": (
        "fatal: Could not read from git@code.example.com:a/b.git",
        "fatal: Could not read from git@forge.example.org:team/app.git",
    ),
    "npm": (
        "npm ERR! 404 Not Found - GET https://registry.example.org/left-pad - Not found",
        "npm ERR! 404 Not Found - GET https://registry.example.org/@scope%2fx - Not found",
    ),
    "pip": (
        "ERROR: No matching distribution found for requests==99.0",
        "ERROR: No matching distribution found for numpy",
    ),
    "compiler place": (
        "src/main.c:12:5: error: unknown type name 'u8'",
        "lib/x.c:300:17: error: unknown type name 'word_t'",
    ),
    "rust": (
        "error[E0425]: cannot find value `total` in this scope\n --> src/lib.rs:4:9",
        "error[E0425]: cannot find value `n` in this scope\n --> src/main.rs:120:13",
    ),
    "locale quotes": ("cannot stat ‘a’", "cannot stat 'b'"),
    "colour": ("\x1b[1;31mfatal:\x1b[0m not a repository", "fatal: not a repository"),
    "carriage return": ("failed\r\nbecause", "failed\nbecause"),
    "docker": ("Error: No such container: web", "Error: No such container: db_1"),
    "curl": (
        "curl: (6) Could not resolve host: api.example.com",
        "curl: (6) Could not resolve host: gandalf",
    ),
    "socket": (
        "dial tcp 10.0.0.1:443: connect: connection refused",
        "dial tcp [2001:db8::7]:80: connect: connection refused",
    ),
    "hardware": ("lease for 00:1b:44:11:3a:b7", "lease for 9C:35:5b:5f:4c:d7"),
    "database": (
        'relation "users" does not exist at character 15',
        'relation "order_items" does not exist at character 87',
    ),
    "database key": (
        "Key (email)=(ann@example.com) already exists.",
        "Key (email)=(bob@example.org) already exists.",
    ),
    "sqlite": ("no such column: price", "no such column: total"),
    "shell": ("bash: line 1: gti: command not found", "bash: line 7: pyhton: command not found"),
    "suggestion": (
        "git: 'psuh' is not a git command.\n\nThe most similar commands are\n\tpush\n\tpull",
        "git: 'brnch' is not a git command.\n\nThe most similar command is\n\tbranch",
    ),
    "suggestion that python lacks": (
        "NameError: name 'lenght' is not defined. Did you mean: 'length'?",
        "NameError: name 'qux' is not defined",
    ),
    "trailing subject": ("cd: no such file or directory: projct", "cd: no such file or directory: a"),
    "zsh": ("zsh: command not found: gti", "zsh: command not found: pyhton"),
    "windows path": (
        r"Access is denied: C:\Users\ann\Desktop\a.txt",
        r"Access is denied: D:\Program Files\app\b.dll",
    ),
    "share": (r"cannot reach \\server\share\x", r"cannot reach \\other\files"),
    "duration unit": ("timed out after 900 ms", "timed out after 2 minutes"),
    "attached unit": ("gave up after 900ms", "gave up after 2.5s"),
    "plural": ("Found 1 error in 1 file", "Found 12 errors in 3 files"),
    "version": ("requires node v18.2.0", "requires node v20.11.1-rc.1"),
    "date": ("expired on 2026-01-02", "expired on 3 Feb 2025"),
    "russian date": ("истёк 17 июня 2025 г.", "истёк 3 мая 2026 г."),
    "russian time": ("сбой в 12:30:01", "сбой в 07:05"),
    "russian quotes": ("файл «отчёт» не найден", "файл «смета за май» не найден"),
    "number of places": (
        "a.py:3: unused import\nb.py:7: unused import\nc.py:9: unused import",
        "a.py:3: unused import",
    ),
    "json body": (
        '{"error": "not found", "id": "a1", "at": 17}',
        '{"error": "not found", "id": "bcd", "at": 99}',
    ),
    "hash": ("fatal: bad object 1a2b3c4", "fatal: bad object 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_texts_that_differ_in_unstable_parts_are_one_situation(one: str, other: str) -> None:
    assert key(one) == key(other)


APART = {
    "noun": ("no such column: price", "no such table: price"),
    "exit code": ("command failed with exit code 1", "command failed with exit code 137"),
    "exit status": ("process finished with exit status 2", "process finished with exit status 127"),
    "http status": ("Request failed with status code 404", "Request failed with status code 500"),
    "http status after the protocol": ("HTTP/1.1 404", "HTTP/1.1 503"),
    "http status in JSON": ('{"status": 404, "id": "x"}', '{"status": 500, "id": "x"}'),
    "http status returned": ("The server returned 429", "The server returned 502"),
    "errno": ("[Errno 2] on open", "[Errno 13] on open"),
    "errno with a sign": ("{ errno: -2, syscall: 'open' }", "{ errno: -13, syscall: 'open' }"),
    "errno name": ("{ code: 'ENOENT' }", "{ code: 'EACCES' }"),
    "windows error": ("[WinError 5] on open", "[WinError 32] on open"),
    "hresult": ("failed, HRESULT = 0x80070005", "failed, HRESULT = 0x80004005"),
    "signal": ("terminated by signal 9", "terminated by signal 11"),
    "rust code": ("error[E0308]: oops", "error[E0425]: oops"),
    "typescript code": ("a.ts(1,2): error TS2345: oops", "a.ts(1,2): error TS2322: oops"),
    "oracle code": ("ORA-00942: oops", "ORA-01017: oops"),
    "linter code": ("a.py:1:80: E501 oops", "a.py:1:80: F401 oops"),
    "mysql code": ("ERROR 1045 (28000): oops", "ERROR 1146 (28000): oops"),
    "sqlstate": ("SQLSTATE[42S02]: oops", "SQLSTATE[23000]: oops"),
    "russian code": ("Процесс завершился с кодом 1", "Процесс завершился с кодом 2"),
    "exception class": ("sqlite3.OperationalError: oops", "sqlite3.IntegrityError: oops"),
    "quoted report": ("OSError('connection refused')", "OSError('no route to host')"),
    "reason in JSON": ('{"error": "NotFound"}', '{"error": "Forbidden"}'),
    "request method": ('"GET /v1/x HTTP/1.1" failed', '"DELETE /v1/x HTTP/1.1" failed'),
    "key": ("timeout=5 exceeded", "retries=5 exceeded"),
    "announced by a noun alone": ("unknown file format", "unknown file type"),
    "mode": ("cannot open, mode=read", "cannot open, mode=write"),
    "technical word": ("no ipv4 route", "no ipv6 route"),
    "words with a slash": ("input/output error", "read/write error"),
    "system error": ("cat: a: No such file or directory", "cat: a: Is a directory"),
    "program": ("cat: a: Permission denied", "rm: a: Permission denied"),
    "russian": ("файл «a» не найден", "файл «a» занят"),
}


@pytest.mark.parametrize(("one", "other"), APART.values(), ids=APART)
def test_texts_that_differ_in_meaning_are_two_situations(one: str, other: str) -> None:
    assert key(one) != key(other)


OTHER_TRADES = {
    "blocks": ("replicating blk_-562 from /10.1.2.3:4455", "replicating blk_77 from /10.9.8.7:1"),
    "containers": (
        "Launching container_e01_1444_0017_02_000007 on worker-a.cluster.local:45454",
        "Launching container_1445_0011_01_000002 on worker2:45454",
    ),
    "cores": ("dumping core.1234", "dumping core.77"),
    "cached blocks": (
        "rdd_42_7 stored (size 5.2 KB, free 369.2 KB)",
        "rdd_1_0 stored (size 12.0 B, free 1.2 GB)",
    ),
    "task ids": ("Task 0.0 of stage 1.0 (TID 7) is done", "Task 12.1 of stage 40.0 (TID 1293) is done"),
    "instances": (
        "[instance: 7f3e0a52-11aa-4c1d-9a3b-0123456789ab] took 19.05 seconds to boot",
        "[instance: 00000000-0000-4000-8000-000000000000] took 7 seconds to boot",
    ),
    "forwarded request": (
        '10.1.1.1,10.1.1.2 "GET /v2/x1/servers HTTP/1.1" status: 200 len: 18 time: 0.03',
        '10.1.1.9 "GET /latest/meta-data HTTP/1.1" status: 200 len: 1893 time: 0.2',
    ),
    "wake lock": (
        'lock=23357, tag="display", name=com.acme.ui, held=true, uid=10037',
        'lock=9, tag="display", name=shell, held=false, uid=0',
    ),
    "window token": (
        "Dropping Token{df0798e Record{3b04890 u0 com.acme.app/.ui.Main t761}}",
        "Dropping Token{1a2b3c4 Record{99 u0 org.other/.Player t9}}",
    ),
    "package store": (
        r"Using stack v6.1.7601.23505 found at C:\Windows\winsxs\amd64_x_none_681a\core.dll",
        r"Using stack v6.1.7600.1 found at C:\Windows\winsxs\x86_y_none_9\core.dll",
    ),
    "ticket": ("Ticket 30546173_4261722401 opened", "Ticket 1_2 opened"),
    "interface": ("wlan0: roamed to 5c:50:15:36:bc:03", "wlan1: roamed to 00:1b:44:11:3a:b7"),
    "pid in brackets": ("agentd[129]: denied", "agentd[30001]: denied"),
    "node ranges": ("drained node-[40-63]", "drained node-129"),
    "fan speeds": ("fans at ( 3552 3534 **** 3515 )", "fans at ( 3500 3500 3500 3500 )"),
    "node records": (
        "views differ: node-31 0x1ff <ok> node-0 0xfff <ok> node-1 0xfff <ok>",
        "views differ: node-3 0x1f <ok> node-9 0xff <ok>",
    ),
    "login": ("shell opened for user alice by (uid=0)", "shell opened for user bob by (uid=0)"),
    "reverse name": ("a caller at 10.0.0.1 (a.example.net)", "a caller at 10.0.0.2 ()"),
    "sizes said twice": ("sent 1165 bytes (1.13 KB)", "sent 90 bytes"),
}


@pytest.mark.parametrize(("one", "other"), OTHER_TRADES.values(), ids=OTHER_TRADES)
def test_the_same_principles_hold_for_messages_of_other_trades(one: str, other: str) -> None:
    assert key(one) == key(other)


def test_no_two_messages_of_different_situations_share_a_key() -> None:
    situations = {**{n: p[0] for n, p in SAME.items()}, **{n: p[0] for n, p in OTHER_TRADES.items()}}
    for (one, text), (other, another) in itertools.combinations(situations.items(), 2):
        assert key(text) != key(another), f"{one} and {other}"
