"""The parameters of a handler as JSON Schema for the model and as a decoder for what the model sends."""

import copy
import functools
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec

from exeunt.actors.errors import InvalidToolDefinition
from exeunt.actors.tools.arguments import ANY_OBJECT, Binder, BoundArguments, WholeObject
from exeunt.actors.tools.pydantic_models import JsonSchema, from_model, is_model_class, of_object
from exeunt.actors.tools.signature import REQUIRED, Parameter, Signature

_ROOT = "_ToolArguments"
_REFERENCE = "#/$defs/{name}"


def from_signature(tool_name: str, signature: Signature) -> tuple[Binder, JsonSchema]:
    """Make binder and schema from annotations. Raises `InvalidToolDefinition`."""
    parameters = signature.parameters
    if len(parameters) == 1 and is_model_class(_bare(parameters[0].annotation)):
        return from_model(tool_name, _bare(parameters[0].annotation))
    for parameter in parameters:
        try:
            _from_parameters(tool_name, (parameter,))
        except Exception as error:
            raise InvalidToolDefinition(_unsupported(tool_name, parameter, error)) from error
    return _from_parameters(tool_name, parameters)


def from_schema(tool_name: str, signature: Signature, schema: Any) -> tuple[Binder, JsonSchema]:
    """Take *schema* as it is; the handler gets the decoded object, unchecked but for being an object."""
    if len(signature.parameters) != 1:
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: a handler with a schema of its own takes the arguments as its only "
            f"parameter beside the invocation, not {len(signature.parameters)}"
        )
    if not isinstance(schema, dict):
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: parameters must be a JSON Schema, not {schema!r:.80}"
        )
    whole = of_object(tool_name, {"type": "object", **cast("JsonSchema", schema)})
    return Binder(tool_name, lambda text: WholeObject(ANY_OBJECT.decode(text))), whole


def _from_parameters(tool_name: str, parameters: tuple[Parameter, ...]) -> tuple[Binder, JsonSchema]:
    struct = msgspec.defstruct(
        _ROOT,
        [_field(parameter) for parameter in parameters],
        bases=(BoundArguments,),
        kw_only=True,
        frozen=True,
        gc=False,
        forbid_unknown_fields=True,
    )
    (reference,), components = msgspec.json.schema_components([struct], ref_template=_REFERENCE)
    root = components.pop(reference["$ref"].removeprefix(_REFERENCE.format(name="")))
    schema: JsonSchema = {"type": "object", "properties": root["properties"]}
    for parameter in parameters:
        if parameter.default is not REQUIRED and _is_json(parameter.default):
            schema["properties"][parameter.name]["default"] = msgspec.to_builtins(parameter.default)
    required = frozenset(parameter.name for parameter in parameters if parameter.default is REQUIRED)
    if required:
        schema["required"] = root["required"]
    schema["additionalProperties"] = False
    if components:
        schema["$defs"] = components
    known = frozenset(parameter.name for parameter in parameters)
    decode = cast("Callable[[str], BoundArguments]", msgspec.json.Decoder(struct).decode)
    return Binder(tool_name, decode, known, required), schema


def _field(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    """The field of a struct. Its default is never shared between calls, unless nothing can change it."""
    annotation, default = _described(parameter.annotation), parameter.default
    if default is REQUIRED:
        return parameter.name, annotation
    try:
        hash(default)
    except TypeError:
        copy.deepcopy(default)  # What cannot be copied is found out here, not in the first call.
        return (
            parameter.name,
            annotation,
            msgspec.field(default_factory=functools.partial(copy.deepcopy, default)),
        )
    if _is_json(default):
        return parameter.name, annotation, default
    # A sentinel. As a plain default it would have to be expressible in the schema.
    return parameter.name, annotation, msgspec.field(default_factory=lambda: default)


def _described(annotation: Any) -> Any:
    """Turn the plain strings of `Annotated` into descriptions that the schema shows."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *notes = get_args(annotation)
        notes = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
        return Annotated[(_described(inner), *notes)]
    if origin in (Union, types.UnionType):
        return Union[tuple(_described(choice) for choice in get_args(annotation))]  # noqa: UP007
    if origin in (list, dict, set, frozenset, tuple) and get_args(annotation):
        return types.GenericAlias(origin, tuple(_described(item) for item in get_args(annotation)))
    return annotation


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _unsupported(tool_name: str, parameter: Parameter, cause: Exception) -> str:
    reason = str(cause).rpartition("\n")[2] or type(cause).__name__
    hint = ""
    if is_model_class(_bare(parameter.annotation)):
        hint = ". A pydantic model has to be the only parameter beside the invocation"
    return f"tool {tool_name!r}: parameter {parameter.name!r} cannot come from a model: {reason}{hint}"


def _is_json(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except Exception:  # noqa: BLE001 - a default may be anything
        return False
    return True
