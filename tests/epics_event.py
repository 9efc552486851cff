"""The messages of PB/HTTP, the Archiver Appliance's binary form, for the library of Protocol Buffers.

The names and numbers of fields are those of its EPICSEvent.proto, which its documentation names as the
format's reference ("The .pb file format and the .pbraw binary protocol").
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ringlog.retrieval.appliance.raw import PayloadType

_Field = descriptor_pb2.FieldDescriptorProto


_VALUES = {
    "ScalarString": (_Field.TYPE_STRING, False),
    "ScalarByte": (_Field.TYPE_BYTES, False),
    "ScalarShort": (_Field.TYPE_SINT32, False),
    "ScalarInt": (_Field.TYPE_SFIXED32, False),
    "ScalarEnum": (_Field.TYPE_SINT32, False),
    "ScalarFloat": (_Field.TYPE_FLOAT, False),
    "ScalarDouble": (_Field.TYPE_DOUBLE, False),
    "VectorString": (_Field.TYPE_STRING, True),
    "VectorChar": (_Field.TYPE_BYTES, False),
    "VectorShort": (_Field.TYPE_SINT32, True),
    "VectorInt": (_Field.TYPE_SFIXED32, True),
    "VectorEnum": (_Field.TYPE_SINT32, True),
    "VectorFloat": (_Field.TYPE_FLOAT, True),
    "VectorDouble": (_Field.TYPE_DOUBLE, True),
}

MESSAGE_OF = {
    PayloadType.SCALAR_STRING: "ScalarString",
    PayloadType.SCALAR_SHORT: "ScalarShort",
    PayloadType.SCALAR_FLOAT: "ScalarFloat",
    PayloadType.SCALAR_ENUM: "ScalarEnum",
    PayloadType.SCALAR_BYTE: "ScalarByte",
    PayloadType.SCALAR_INT: "ScalarInt",
    PayloadType.SCALAR_DOUBLE: "ScalarDouble",
    PayloadType.WAVEFORM_STRING: "VectorString",
    PayloadType.WAVEFORM_SHORT: "VectorShort",
    PayloadType.WAVEFORM_FLOAT: "VectorFloat",
    PayloadType.WAVEFORM_ENUM: "VectorEnum",
    PayloadType.WAVEFORM_BYTE: "VectorChar",
    PayloadType.WAVEFORM_INT: "VectorInt",
    PayloadType.WAVEFORM_DOUBLE: "VectorDouble",
}


def _add(message: Any, name: str, number: int, kind: int, label: int, type_name: str = "") -> Any:
    field = message.field.add(name=name, number=number, type=kind, label=label)
    if type_name:
        field.type_name = type_name
    return field


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="ringlog/EPICSEvent.proto", package="EPICS", syntax="proto2"
    )
    required, optional, repeated = _Field.LABEL_REQUIRED, _Field.LABEL_OPTIONAL, _Field.LABEL_REPEATED
    pair = file.message_type.add(name="FieldValue")
    _add(pair, "name", 1, _Field.TYPE_STRING, required)
    _add(pair, "val", 2, _Field.TYPE_STRING, required)
    for name, (kind, several) in _VALUES.items():
        message = file.message_type.add(name=name)
        _add(message, "secondsintoyear", 1, _Field.TYPE_UINT32, required)
        _add(message, "nano", 2, _Field.TYPE_UINT32, required)
        value = _add(message, "val", 3, kind, repeated if several else required)
        if several and kind != _Field.TYPE_STRING:
            value.options.packed = True
        _add(message, "severity", 4, _Field.TYPE_INT32, optional)
        _add(message, "status", 5, _Field.TYPE_INT32, optional)
        _add(message, "repeatcount", 6, _Field.TYPE_UINT32, optional)
        _add(message, "fieldvalues", 7, _Field.TYPE_MESSAGE, repeated, ".EPICS.FieldValue")
        _add(message, "fieldactualchange", 8, _Field.TYPE_BOOL, optional)
    types = file.enum_type.add(name="PayloadType")
    for each in PayloadType:
        types.value.add(name=each.name, number=each.value)
    info = file.message_type.add(name="PayloadInfo")
    _add(info, "type", 1, _Field.TYPE_ENUM, required, ".EPICS.PayloadType")
    _add(info, "pvname", 2, _Field.TYPE_STRING, required)
    _add(info, "year", 3, _Field.TYPE_INT32, required)
    _add(info, "elementCount", 4, _Field.TYPE_INT32, optional)
    _add(info, "headers", 15, _Field.TYPE_MESSAGE, repeated, ".EPICS.FieldValue")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def message(name: str) -> Any:
    """The class of a message, such as PayloadInfo or ScalarDouble."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"EPICS.{name}"))
