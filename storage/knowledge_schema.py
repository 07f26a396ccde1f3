"""The tables of the knowledge index.

Full-text search is SQLite's own (FTS5), over terms that an analyser has already made: its tokeniser only
splits at white space. The index is contentless, so no text is stored twice; the terms of an item are kept
beside it, since they must be named to be taken out again. How many items hold each term stands in a table of
its own: a look-up needs that for a few hundred words at once, and counting a common word's list takes
milliseconds.

Scope and state are columns of the narrow table that each search is joined with, so that what a caller may not
see is never read (E7). `item_key` is the sequence of the item's last record, and its revision.
"""

SCHEMA = """
CREATE TABLE IF NOT EXISTS fold (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    analysis TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    items INTEGER NOT NULL,
    terms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS item (
    item_key INTEGER PRIMARY KEY,
    knowledge_id TEXT NOT NULL,
    project TEXT NOT NULL,
    team TEXT,
    user TEXT,
    state TEXT NOT NULL,
    is_offerable INTEGER NOT NULL,
    valid_from REAL NOT NULL,
    valid_until REAL NOT NULL,
    by_person INTEGER NOT NULL,
    topic TEXT,
    UNIQUE (knowledge_id, project)
);
CREATE TABLE IF NOT EXISTS item_content (
    item_key INTEGER PRIMARY KEY,
    content BLOB NOT NULL,
    profile BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS term (
    term TEXT PRIMARY KEY,
    items INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS supersession (
    old_id TEXT NOT NULL,
    new_key INTEGER NOT NULL,
    PRIMARY KEY (old_id, new_key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS supersession_by_new ON supersession (new_key);
CREATE VIRTUAL TABLE IF NOT EXISTS item_terms USING fts5 (
    terms, content = '', columnsize = 0, detail = 'none',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'"
);
PRAGMA secure_delete = ON;
"""

EMPTY = (
    "DELETE FROM fold",
    "DELETE FROM item",
    "DELETE FROM item_content",
    "DELETE FROM term",
    "DELETE FROM supersession",
    "INSERT INTO item_terms (item_terms) VALUES ('delete-all')",
)
"""Takes out everything, so that the stream is folded again from its first record."""

EVERYWHERE = ""
"""What stands in `item.project` for an item of every project: NULLs would not be unique."""
EVER_BEFORE = -1e18
EVER_AFTER = 1e18
