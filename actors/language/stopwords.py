"""Words that say nothing about what a text is about, and are dropped.

Most bind sentences together. Placeholders are the names that examples use when a name does not matter: two
texts that share `foo` share nothing.
"""

_ENGLISH = """
a an the this that these those some any each every either neither both all few more most other such own same
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
who whom whose which what when where why how there here then than so as too very just also only still yet
am is are was were be been being do does did doing done have has had having can could will would shall should
may might must ought let lets
not no nor and or but if else because while until unless although though
of to in on at by for from with without into onto over under about above below between through during before
after against among across per via up down out off again once
isn aren wasn weren don doesn didn haven hasn hadn won wouldn shan shouldn can couldn mustn needn ain
s t d ll m re ve
"""

_RUSSIAN = """
а без более бы был была были было быть в вам вами вас ведь весь во вот все всего всей всем всеми всех всю всё
вся вы г где да даже для до его ей ему если есть еще ещё её ею ж же за здесь и из или им ими их к как какая
какие какой каком какую ко когда который которая которое которые которых которой которого ли либо лишь между
меня мне много может можно мной мною мы на над надо нам нами нас наш наша наше наши не него нее неё ней нем
нет ни ним ними них но ну о об обо однако он она они оно от ото очень по под подо после потом потому при про
раз с сам сама сами само свой своего своей своём свою свои себе себя собой со так также такая такие такой там
тебе тебя тем теми то тобой тобою того тоже той только том тому тот ту тут ты у уж уже хотя чего чей чем через
что чтобы чтоб эта эти этих это этого этой этом этому этот эту я
"""

_PLACEHOLDERS = "foo bar baz qux quux foobar"

STOP_WORDS: frozenset[str] = frozenset((_ENGLISH + _RUSSIAN + _PLACEHOLDERS).replace("ё", "е").split())
"""Lower-case words without weight, of both languages, with `е` for `ё`."""
