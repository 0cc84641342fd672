"""Follows an arena's log with a client that Agon's authors did not write. Prints one line of JSON."""

import json
import sys
import uuid

from kurrentdbclient import KurrentDBClient, NewEvent, StreamState
from kurrentdbclient.exceptions import AccessDeniedError, NotFoundError, WrongCurrentVersionError

address, certificate, reader_key, writer_key = sys.argv[1:5]
with open(certificate, "rb") as file:
    trusted = file.read()


def connect(key):
    return KurrentDBClient(f"esdb://agon:{key}@{address}", root_certificates=trusted)


def refused(kind, call):
    try:
        call()
    except kind:
        return True
    return False


reader, writer = connect(reader_key), connect(writer_key)
stream = f"python-{uuid.uuid4()}"
events = [
    NewEvent(type="Counted", data=json.dumps({"n": n}).encode(), metadata=b'{"by": "python"}') for n in range(5)
]
writer.append_to_stream(stream, current_version=StreamState.NO_STREAM, events=events[:3])
last = writer.append_to_stream(stream, current_version=2, events=events[3:])
again = writer.append_to_stream(stream, current_version=2, events=events[3:])

everything = list(reader.read_all())
filtered = list(reader.read_all(filter_include=[r"Counted"], filter_by_stream_name=False))
own_type = list(reader.read_all(filter_include=[r"OwnerRegistered"]))
own = list(reader.get_stream(stream))
backwards = list(reader.get_stream(stream, backwards=True, limit=2))

followed = []
with reader.subscribe_to_all(filter_include=[f"{stream}"], filter_by_stream_name=True) as subscription:
    writer.append_to_stream(stream, current_version=4, events=[NewEvent(type="Counted", data=b'{"n": 5}')])
    for event in subscription:
        followed.append(json.loads(event.data)["n"])
        if len(followed) == 6:
            break

caught = []
with reader.subscribe_to_stream(stream, stream_position=3) as subscription:
    for event in subscription:
        caught.append(event.stream_position)
        if len(caught) == 2:
            break

print(
    json.dumps(
        {
            "total": len(everything),
            "ordered": all(a.commit_position < b.commit_position for a, b in zip(everything, everything[1:])),
            "counted": len(filtered),
            "accounts": [json.loads(event.data)["accountId"] for event in own_type],
            "read": [json.loads(event.data)["n"] for event in own],
            "ids": [event.id for event in own] == [event.id for event in events],
            "metadata": json.loads(own[0].metadata)["by"],
            "sealed": all(len(json.loads(event.metadata)["hash"]) == 64 for event in everything),
            "backwards": [event.stream_position for event in backwards],
            "followed": followed,
            "caught": caught,
            "repeated": last == again,
            "conflict": refused(
                WrongCurrentVersionError,
                lambda: writer.append_to_stream(stream, current_version=0, events=[NewEvent(type="Counted", data=b"{}")]),
            ),
            "missing": refused(NotFoundError, lambda: list(reader.get_stream("python-missing"))),
            "denied": refused(
                AccessDeniedError,
                lambda: reader.append_to_stream(
                    stream, current_version=StreamState.ANY, events=[NewEvent(type="Counted", data=b"{}")]
                ),
            ),
            "immutable": refused(AccessDeniedError, lambda: writer.delete_stream(stream, current_version=5)),
        },
        default=str,
    )
)
