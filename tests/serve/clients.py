"""Asks a server as psycopg and SQLAlchemy do: PORT drivers | questions FILE | many SESSIONS SECONDS."""

import json
import os
import random
import struct
import sys
import threading
import time

import psycopg
import sqlalchemy as sa

PORT = int(sys.argv[1])
DSN = f"host=127.0.0.1 port={PORT} user=reader dbname=publications sslmode=disable"
URL = f"postgresql+psycopg://reader@127.0.0.1:{PORT}/publications?sslmode=disable"


def drivers():
    with psycopg.connect(DSN) as connection:
        people = connection.execute("SELECT count(*) FROM clinic").fetchone()
        assert people == (60,), people
        # Parameters go by themselves, and a statement that is asked often is prepared.
        question = "SELECT count(*), avg(age) FROM clinic WHERE age > %s AND sex = %s"
        answers = {connection.execute(question, (30, "F"), prepare=kind).fetchone() for kind in (None, True, False)}
        assert len(answers) == 1, answers
        plain = psycopg.ClientCursor(connection).execute(question, (30, "F")).fetchone()
        assert {plain} == answers, (plain, answers)
        with connection.cursor(binary=True) as binary:
            assert {binary.execute(question, (30, "F")).fetchone()} == answers
            low, high = binary.execute("SELECT age FROM release(clinic) LIMIT 1").fetchone()[0]
            assert isinstance(low, int) and low <= high
        row = connection.execute("SELECT age_lo, sex_lo, diagnosis, group_id FROM clinic_flat LIMIT 1").fetchone()
        assert [type(value) for value in row] == [int, str, str, int], row
        (moment,) = connection.execute("SELECT time FROM releases(clinic)").fetchone()
        assert moment.year > 2000 and moment.utcoffset().total_seconds() == 0, moment
        # A refusal is what it is, and a transaction goes on after its end.
        for statement, wanted in [
            ("DELETE FROM clinic", psycopg.errors.InsufficientPrivilege),
            ("SELECT * FROM clinic", psycopg.errors.FeatureNotSupported),
            ("SELECT max(age) FROM clinic", psycopg.errors.FeatureNotSupported),
            ("SELECT nothing FROM q1", psycopg.errors.UndefinedColumn),
        ]:
            try:
                connection.execute(statement)
                raise AssertionError(statement)
            except wanted:
                pass
            try:
                connection.execute("SELECT 1")
                raise AssertionError("after an error")
            except psycopg.errors.InFailedSqlTransaction:
                connection.rollback()
        with connection.transaction(), connection.transaction():
            assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.rollback()
        # A statement is cancelled, and the session goes on.
        threading.Timer(0.5, connection.cancel).start()
        try:
            connection.execute("SELECT count(*) FROM q1 a, q1 b, q1 c, q1 d, q1 e WHERE sin(a.group_id + e.group_id) + cos(b.group_id + e.group_id) + tan(c.group_id + e.group_id) * atan(d.group_id + e.group_id) > 1000 + sin(a.group_id + b.group_id + c.group_id + d.group_id + e.group_id)")
            raise AssertionError("not cancelled")
        except psycopg.errors.QueryCanceled:
            connection.rollback()
        assert connection.execute("SELECT count(*) FROM clinic").fetchone() == (60,)

    engine = sa.create_engine(URL)
    inspector = sa.inspect(engine)
    assert "public" in inspector.get_schema_names(), inspector.get_schema_names()
    assert sorted(inspector.get_table_names()) == ["clinic", "q1"], inspector.get_table_names()
    assert sorted(inspector.get_view_names()) == ["clinic_flat", "q1_flat"], inspector.get_view_names()
    columns = {column["name"]: str(column["type"]) for column in inspector.get_columns("clinic")}
    assert columns == {"age": "BIGINT", "sex": "TEXT", "postcode": "BIGINT", "diagnosis": "TEXT"}, columns
    names = [column["name"] for column in inspector.get_columns("q1_flat")]
    assert names[:2] == ["age_lo", "age_hi"], names
    assert inspector.has_table("clinic") and not inspector.has_table("patients")
    assert inspector.get_pk_constraint("clinic")["constrained_columns"] == []
    assert inspector.get_foreign_keys("clinic") == [] and inspector.get_indexes("clinic") == []
    metadata = sa.MetaData()
    metadata.reflect(engine, views=True)
    clinic = metadata.tables["clinic"]
    people = sa.func.count().label("people")
    question = sa.select(clinic.c.diagnosis, people).where(clinic.c.age > 40).group_by(clinic.c.diagnosis).order_by(people)
    with engine.connect() as connection:
        rows = connection.execute(question).all()
        assert len(rows) > 3 and sum(row.people for row in rows) < 60, rows
    print("fine")


def questions(file):
    def said(value):
        if isinstance(value, float):
            return str(struct.unpack("<Q", struct.pack("<d", value))[0])
        return None if value is None else str(value)

    with open(file) as text, psycopg.connect(DSN, autocommit=True) as connection:
        answers = []
        for question in json.load(text):
            rows = connection.execute(question).fetchall()
            answers.append([[said(value) for value in row] for row in rows])
    print(json.dumps(answers))


def many(sessions, seconds):
    """Everybody asks, and every tenth goes in the middle of an answer."""
    until = time.monotonic() + seconds
    answered, wrong = [0] * sessions, []

    def reader(number):
        dice = random.Random(number)
        try:
            while time.monotonic() < until:
                connection = psycopg.connect(DSN, autocommit=True)
                for _ in range(dice.randrange(1, 30)):
                    if time.monotonic() > until:
                        break
                    low = dice.randrange(20, 60)
                    (found,) = connection.execute("SELECT count(*) FROM clinic WHERE age >= %s", (low,)).fetchone()
                    assert 0 <= found <= 60, found
                    answered[number] += 1
                if number % 10 == 0:
                    # Without a word.
                    connection.pgconn.send_query(b"SELECT a.* FROM q1_flat a, q1_flat b, q1_flat c")
                    connection.pgconn.flush()
                    os.close(os.dup2(os.open(os.devnull, os.O_RDONLY), connection.pgconn.socket))
                connection.close()
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{number}: {type(error).__name__} {error}")

    threads = [threading.Thread(target=reader, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:5]
    print(sum(answered))


{"drivers": drivers, "questions": questions, "many": lambda *of: many(*map(int, of))}[sys.argv[2]](*sys.argv[3:])
