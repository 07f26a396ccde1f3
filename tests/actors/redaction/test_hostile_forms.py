"""Secrets as an attacker, or three layers of tooling, would write them (A47)."""

from random import Random

import pytest

from temporality.actors.redaction import redact
from temporality.actors.redaction.samples.secrets import characters

LETTERS_AND_DIGITS = "abcdefghkmnpqrstuvwxyzABCDEFGHKMNPQRSTUVWXYZ23456789"

FORMS = (
    r'{"a":"{\"b\":\"{\\\"password\\\":\\\"SECRET\\\"}\"}"}',
    "password: |\n  SECRET\n  second line\nnext: 1",
    "db:\n  password: >-\n    SECRET\n  user: bob",
    "password:\n  SECRET",
    "tokens:\n  - SECRET\n  - x",
    "a%3D1%26password%3DSECRET%26b%3D2",
    "%7B%22token%22%3A%22SECRET%22%7D",
    "access_token%253DSECRET%2526",
    r'"password":"a\"SECRET"',
    "set TOKEN=SECRET",
    "setx API_TOKEN SECRET",
    "docker run -e TOKEN=SECRET img",
    "curl -u bob:SECRET https://x",
    "curl -su bob:SECRET https://x",
    "curl --user 'bob:SECRET' https://x",
    "machine h login bob password SECRET",
    "machine h\n  login bob\n  password SECRET\n",
    "localhost:5432:db:bob:SECRET",
    "Server=db;Database=x;User Id=sa;Password=SECRET;",
    "{'token': 'SECRET'}",
    "<password>SECRET</password>",
    '<password type="x"><![CDATA[SECRET]]></password>',
    '<add key="ApiKey" value="SECRET"/>',
    '<property name="password" value="SECRET" />',
    "<key>password</key>\n<string>SECRET</string>",
    "> Authorization: Bearer SECRET\r\n> Host: x",
    "bob:$apr1$SECRET$AbCdEfGhIjKlMnOpQrStU1",
    'level=error msg="x" token=SECRET dur=1ms',
    '$cred = ConvertTo-SecureString "SECRET" -AsPlainText -Force',
    "Connect-X -Password 'SECRET' -User bob",
    "пароль: SECRET",
    "Ваш пароль — SECRET, смените его",
    "токен доступа — SECRET",
    "Токен доступа для API: SECRET",
    "логин bob пароль SECRET",
    "ALTER USER bob WITH PASSWORD 'SECRET';",
    "CREATE USER 'b'@'h' IDENTIFIED BY 'SECRET'",
    '- name: DB_PASSWORD\n  value: "SECRET"',
    '{"name": "DB_PASSWORD", "value": "SECRET"}',
    "map[Authorization:[Bearer SECRET] Accept:[*/*]]",
    "map[password:SECRET user:bob]",
    'Config{Password:"SECRET", User:"bob"}',
    "password => 'SECRET',",
    "define('DB_PASSWORD', 'SECRET');",
    "$cfg['password'] = 'SECRET';",
    'builder.setPassword("SECRET")',
    'let token: String = "SECRET".into();',
    "&quot;password&quot;:&quot;SECRET&quot;",
    r"\u0022token\u0022:\u0022SECRET\u0022",
    "//registry.example/:_authToken=SECRET",
    "echo SECRET | docker login -u bob --password-stdin",
    "sshpass -p SECRET ssh h",
    "openssl rsa -passin pass:SECRET -in k",
    "bob:SECRET@tcp(127.0.0.1:3306)/d",
    "**Password:** SECRET",
    "| password | SECRET |",
    'password="SECRET',
    r"line\npassword: SECRET\nnext",
    "requests.get(u, auth=('bob', 'SECRET'))",
    "-H Authorization:Bearer\\ SECRET",
    "jdbc:oracle:thin:scott/SECRET@//h:1521/x",
    "password(SECRET)",
    "Incorrect API key provided: SECRET. You can find",
    "Error: bad password 'SECRET' for user bob",
    'PASSWORD="""SECRET"""',
    "password=b'SECRET'",
    "smbclient -U bob%SECRET //h/s",
    "htpasswd -bc f bob SECRET",
    "passphrase: correct SECRET battery",
    'api_keys = ["abc12345", "SECRET"]',
)


@pytest.mark.parametrize("form", FORMS)
def test_secret_is_found_in_a_hostile_form(form: str) -> None:
    rng = Random(form)
    for _ in range(20):
        secret = characters(rng, LETTERS_AND_DIGITS, 12, 24)
        assert secret not in redact(form.replace("SECRET", secret)).text


def test_short_password_goes_too() -> None:
    for value in ("a", "ab1", "x9", "1234"):
        assert redact(f"password={value}").text == "password=[redacted:password]"


def test_pass_phrase_of_plain_words_goes_whole() -> None:
    assert redact("passphrase: correct horse battery staple").text == "passphrase: [redacted:password]"


def test_certificate_stays_and_the_key_after_it_goes() -> None:
    body = "A" * 64
    certificate = f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"
    label = "PRIVATE KEY-----"
    key = f"-----BEGIN {label}\n{body}\n-----END {label}\n"
    assert redact(certificate + key).text == certificate + "[redacted:private-key]\n"


def test_user_of_a_url_stays_unless_it_looks_like_a_token() -> None:
    token = characters(Random(5), LETTERS_AND_DIGITS, 32)
    assert redact(f"https://bob:{token}@h/x").text == "https://bob:[redacted:url-password]@h/x"
    assert token not in redact(f"https://{token}:x-oauth-basic@h/x").text
    assert token not in redact(f"https://{token}@h/x").text
