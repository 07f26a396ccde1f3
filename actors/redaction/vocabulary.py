"""Words that report a state, name a type or belong to a sentence, where a secret might stand instead."""

CODE_WORDS = frozenset(
    "none null nil undefined true false str string int integer text varchar bytes byte bool boolean "
    "number float double object array any void char uuid unknown optional secretstr self cls this const "
    "let var await new return input getpass function lambda default noop nan char16 blob json list dict "
    "map set tuple".split()
)
STATE_WORDS = frozenset(
    "required optional missing invalid valid expired revoked empty blank unset incorrect wrong mismatch "
    "mismatched failed failure fails success succeeded denied forbidden unauthorized rejected accepted "
    "expected unexpected found enabled disabled default changed updated generated created deleted loaded "
    "saved provided present absent hidden redacted masked prompt stdin environment keyring inherit "
    "include omit same-origin none-set must should cannot please enter field error syntax unterminated "
    "unsupported deprecated authentication authorization authenticated permission contains identifier "
    "keyword literal operator string number eof newline whitespace неверный неверен неправильный "
    "обязателен обязательно обязательное отсутствует истёк истек просрочен недействителен указан введите "
    "строка пуст пустой должен должна нужен устарел отозван изменён изменен сброшен option options flags "
    "argument arguments parameter parameters placeholder basic bearer digest ntlm oauth oauth2 kerberos "
    "saml ldap plain scram-sha-256 md5 trust peer oidc".split()
)
SHORT_WORDS = frozenset(
    "is are was were be been has have had not no yes on off ok a an the this that these it in at for "
    "from of to with by and or if as so but you your we i its bad too got set see use via per non let "
    "does did do can may will all any both only ждёт не нет да и или в на с к по для от при если то это "
    "был была как уже".split()
)
PROSE_WORDS = frozenset(
    "must required invalid field should cannot can't please missing blank characters incorrect expired "
    "doesn't didn't mismatch wrong is not are was be the for to does did or at least with your you least "
    "too been должен обязательно символов поле не нужно введите быть".split()
)
VALIDATION_WORDS = frozenset(
    "must required invalid field should cannot can't please missing blank characters incorrect expired "
    "doesn't didn't mismatch wrong least должен обязательно символов поле нужно введите".split()
)
