"""A FastMCP server, as somebody writes one with the official Python package: over stdio, or with a port over HTTP."""

from __future__ import annotations

import base64
import os
import sys

from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents
from pydantic import BaseModel

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = FastMCP("tides", host="127.0.0.1", port=port or 8000, log_level="WARNING")


class Height(BaseModel):
    port: str
    metres: float


@server.tool(name="tide.look/up")
def look_up(port: str, day: str | None = None) -> str:
    """Tells how high the water is."""
    return f"{port}: 5 m"


@server.tool()
def heights(ports: list[str]) -> list[Height]:
    """Structured content, with what FastMCP makes of it as text."""
    return [Height(port=port, metres=5.0) for port in ports]


@server.tool()
def only_structured() -> CallToolResult:
    """Structured content that the text does not repeat."""
    return CallToolResult(content=[TextContent(type="text", text="One port.")], structuredContent={"port": "Kestrel"})


@server.tool(structured_output=False)
def chart() -> list[str | Image]:
    """Text and a picture."""
    return ["The chart:", Image(data=PNG, format="png")]


@server.tool()
def papers() -> CallToolResult:
    """A resource and a link to one."""
    text = TextResourceContents(uri="tide://kestrel", mimeType="text/plain", text="high at noon")
    link = ResourceLink(type="resource_link", uri="tide://heron", name="heron", description="tides of Heron")
    return CallToolResult(content=[EmbeddedResource(type="resource", resource=text), link])


@server.tool()
def fails() -> str:
    """Raises."""
    raise ValueError("no gauge at Kestrel")


@server.tool()
def environment() -> str:
    """The names of this program's variables."""
    return " ".join(sorted(os.environ))


@server.tool()
def dies() -> str:
    """Ends the program at once."""
    os._exit(7)


@server.tool()
async def grow(context: Context) -> str:
    """Adds a tool, and tells so."""

    @server.tool()
    def wind(port: str) -> str:
        """Tells the wind."""
        return f"{port}: a breeze"

    await context.session.send_tool_list_changed()
    return "grown"


if __name__ == "__main__":
    server.run("streamable-http" if port else "stdio")
