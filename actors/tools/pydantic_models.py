"""Models of pydantic, for hosts that use it. Nothing here imports it.

An object can be a model only after its own module has imported pydantic, so it is enough to look whether that
has happened.
"""

import inspect
import sys
from typing import Any

from exeunt.actors.errors import InvalidToolDefinition
from exeunt.actors.tools.arguments import ANY_OBJECT, Binder, BoundArguments, Unfit, WholeObject

JsonSchema = dict[str, Any]


def is_model(value: Any) -> bool:
    """Whether *value* is an instance of a model."""
    return isinstance(value, getattr(sys.modules.get("pydantic"), "BaseModel", ()))


def is_model_class(annotation: Any) -> bool:
    """Whether *annotation* is a class of models."""
    base = getattr(sys.modules.get("pydantic"), "BaseModel", ())
    return inspect.isclass(annotation) and issubclass(annotation, base)


def from_model(tool_name: str, model: Any) -> tuple[Binder, JsonSchema]:
    """Make binder and schema for a handler whose only parameter is *model*: the whole arguments object.

    Raises `InvalidToolDefinition`.
    """
    invalid = sys.modules["pydantic"].ValidationError

    def decode(text: str) -> BoundArguments:
        # First as plain JSON: pydantic's own reader takes `NaN`, and 1e999 as infinity.
        ANY_OBJECT.decode(text)
        try:
            return WholeObject(model.model_validate_json(text))
        except invalid as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            places = (".".join(map(str, problem["loc"])) or "arguments" for problem in problems)
            messages = (f"{place}: {problem['msg']}" for place, problem in zip(places, problems, strict=True))
            raise Unfit("; ".join(messages)) from error

    try:
        schema: JsonSchema = model.model_json_schema()
    except Exception as error:
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: {model.__name__} has no JSON Schema: {error}"
        ) from error
    if "$ref" in schema:
        # A recursive model is a reference to itself; the outermost schema has to be that of an object.
        schema = {**schema["$defs"][schema["$ref"].rpartition("/")[2]], "$defs": schema["$defs"]}
    return Binder(tool_name, decode), of_object(tool_name, schema)


def of_object(tool_name: str, schema: JsonSchema) -> JsonSchema:
    """Return *schema* with `properties`. Raises `InvalidToolDefinition` unless it is that of an object."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise InvalidToolDefinition(
            f"tool {tool_name!r}: the schema of its parameters is not that of an object"
        )
    return {"properties": {}, **schema}
