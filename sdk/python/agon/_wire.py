"""The messages of proto/agon/arena/v1 and proto/google/rpc, made from their description when this is first imported."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ._descriptor import DESCRIPTOR

PACKAGE = "agon.arena.v1"
SERVICE = f"{PACKAGE}.ArenaService"

_pool = descriptor_pool.DescriptorPool()
for _file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(DESCRIPTOR)).file:
    _pool.Add(_file)


def message(name: str, package: str = PACKAGE) -> Any:
    """The class of a message by its name."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{package}.{name}"))
