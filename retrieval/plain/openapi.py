"""The plain API in OpenAPI 3.1, of openapi.toml."""

import re
import tomllib
from pathlib import Path
from typing import Any

_API = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def _parameter(given: str | dict[str, Any]) -> dict[str, Any]:
    """A parameter, by its name if it is shared."""
    own = {"name": given, **_API["shared"][given]} if isinstance(given, str) else given
    schema: dict[str, Any] = {"type": own.get("type", "string")}
    if values := own.get("values"):
        schema |= {"enum": values, "default": values[0]}
    if own.get("many"):
        schema = {"type": "array", "items": schema}
    return {
        "name": own["name"],
        "in": "query",
        "required": own.get("required", False),
        "description": own["description"].replace("{time}", _API["time"]),
        "schema": schema,
    }


def _get(path: str, route: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]
    media = [_API["media"][form] for form in route.get("media", ["json"])]
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "summary": route["summary"],
        "parameters": parameters + [_parameter(given) for given in route.get("parameters", ())],
        "responses": {
            "200": {"description": route["summary"], "content": {form: {} for form in media}},
            **{status: {"description": text, "content": error} for status, text in _API["errors"].items()},
        },
    }


DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "ringlog", "version": "1", "description": _API["description"]},
    "components": {
        "securitySchemes": {
            "basic": {"type": "http", "scheme": "basic", "description": "a PostgreSQL login"},
            "bearer": {"type": "http", "scheme": "bearer", "description": "a token of POST /api/v1/token"},
        },
        "schemas": {
            "Error": {
                "type": "object",
                "properties": {"error": {"type": "string"}, "status": {"type": "integer"}},
                "required": ["error", "status"],
            }
        },
    },
    "security": [{"basic": []}, {"bearer": []}, {}],
    "paths": {path: {"get": _get(path, route)} for path, route in _API["paths"].items()}
    | {
        "/api/v1/token": {
            "post": {
                "summary": "a bearer token for the login of the request",
                "responses": {
                    "200": {"description": "token, and its validity in seconds"},
                    "401": {"description": _API["errors"]["401"]},
                },
            }
        }
    },
}
