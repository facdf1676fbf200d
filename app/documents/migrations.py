"""The schema of the document library, as numbered steps; see `app/history/migrations.py`.

A file is a place, a document is what lies there: same bytes are one document, whatever their
names. What was read can be made again from the files, some of it only with a password. The added
places and the collections stand nowhere else.
"""

from sqlite_utils import Database as Tables

from app.history.migrations import Step

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
"""The marks belong to words, or scripts with vowel signs would fall apart."""


def m001_library(db: Tables) -> None:
    """Files, documents with their pages and passages, the text index, and collections."""
    db.executescript(
        f"""
        create table root (
            id integer primary key,
            path text not null unique,
            is_folder integer not null,
            is_there integer not null default 1,
            -- Which folder of the system stood at this path when files were seen in it.
            identity text not null default '');

        create table collection (
            id integer primary key,
            name text not null unique);
        create table collected (
            collection_id integer not null references collection(id) on delete cascade,
            path text not null,
            primary key (collection_id, path)) without rowid;

        create table document (
            id integer primary key,
            sha256 text not null unique,
            state text not null,
            kind text not null,
            title text not null,
            notice text not null,
            num_pages integer not null,
            num_empty_pages integer not null,
            reader_version integer not null);
        create table file (
            id integer primary key,
            root_id integer not null references root(id) on delete cascade,
            path text not null unique,
            size integer not null,
            mtime_ns integer not null,
            document_id integer references document(id),
            state text not null,
            message text not null default '');
        create index file_root on file(root_id);
        create index file_document on file(document_id);
        create index file_size on file(size);
        create index file_waiting on file(document_id is null, id) where state = 'waiting';

        create table page (
            document_id integer not null references document(id) on delete cascade,
            number integer not null,
            label text not null,
            flags text not null,
            text text not null,
            primary key (document_id, number)) without rowid;
        create table passage (
            id integer primary key,
            document_id integer not null references document(id) on delete cascade,
            page_from integer not null,
            page_to integer not null,
            start integer not null,
            end integer not null,
            heading text not null);
        create index passage_document on passage(document_id);

        -- Contentless: the text stands in `page` alone. Who deletes a row gives its tokens.
        create virtual table passage_fts using fts5(
            heading, body, content='', tokenize="{TOKENIZER}");
        create virtual table passage_term using fts5vocab(passage_fts, row);
        create table index_fact (name text primary key, value integer not null) without rowid;
        """
    )


def m002_whole(db: Tables) -> None:
    """Documents that were read whole: a model may have kept what it made of them."""
    db.executescript(
        """
        create table whole (
            document_id integer primary key references document(id) on delete cascade,
            sha256 text not null,
            fence text not null);
        """
    )


def m003_vectors(db: Tables) -> None:
    """Which embedding models were used, the vectors of passages, and the languages of documents."""
    db.executescript(
        """
        -- Null: nobody has looked; empty: nothing tells.
        alter table document add column language text;

        create table embedder (
            id integer primary key,
            key text not null unique,
            facts text not null,
            is_used integer not null default 0);
        -- A number is never given twice, so who has all up to one has only later ones to read.
        create table vector (
            id integer primary key autoincrement,
            embedder_id integer not null references embedder(id) on delete cascade,
            passage_id integer not null references passage(id) on delete cascade,
            numbers blob not null,
            unique (embedder_id, passage_id));
        create index vector_passage on vector(passage_id);
        """
    )


def m004_ocr(db: Tables) -> None:
    """Where on its picture the text of a page stands that OCR has read; how many pages of a
    document it has read, and how many it could still read; which files wait for it."""
    db.executescript(
        """
        alter table page add column pieces text not null default '';
        alter table document add column num_unread_pages integer not null default 0;
        alter table document add column num_ocr_pages integer not null default 0;
        -- OCR takes long, so whatever waits for it comes last.
        alter table file add column waits_for_ocr integer not null default 0;
        drop index file_waiting;
        create index file_waiting on file(waits_for_ocr, document_id is null, id)
            where state = 'waiting';
        update document set num_unread_pages = (select count(*) from page
            where document_id = document.id and (flags like '%picture only%'
            or flags like '%garbled%'))
            where kind = 'pdf';
        -- Of files without any text no pages were kept, so it is not known how many there are.
        update file set state = 'waiting', message = ''
            where state = 'no text' and document_id is null;
        """
    )


def m005_moves(db: Tables) -> None:
    """Where a file is now that had another path, and when that was noticed."""
    db.executescript(
        """
        create table moved(
            path text primary key,
            now text not null,
            noticed_at real not null);
        create index moved_now on moved(now);
        """
    )


STEPS: tuple[Step, ...] = (m001_library, m002_whole, m003_vectors, m004_ocr, m005_moves)
"""A step that was shipped is never edited; a change is a new step at the end."""
