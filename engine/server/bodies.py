"""Request bodies: what of OpenAI's API is understood. Fields beyond these are taken and have no effect."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar, cast

from pydantic import BaseModel, Field, ValidationError

from .errors import ApiError
from .tokens import chat_text

MOST_CHOICES = 128

Limit = Annotated[int, Field(ge=1)]
TokenIds = Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1)]
Prompts = Annotated[list[str] | list[TokenIds], Field(min_length=1)]


class StreamOptions(BaseModel):
    """`stream_options`."""

    include_usage: bool = False


class Body(BaseModel):
    """What completions and chat completions have in common."""

    model: str
    max_tokens: Limit | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    """Taken, and never met: filler text is not made of what anybody asks for."""
    logprobs: bool | int | None = None
    cache_salt: str = ""
    """Prompts of different salts share no prefix."""

    @property
    def limit(self) -> int | None:
        """The output limit asked for; None: none."""
        return self.max_tokens

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with its usage."""
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionBody(Body):
    """`POST /v1/completions`."""

    prompt: str | TokenIds | Prompts
    max_tokens: Limit | None = 16
    """OpenAI's default."""
    echo: bool = False

    @property
    def prompts(self) -> list[str] | list[list[int]]:
        """The prompts: texts, or token ids."""
        prompt = self.prompt
        is_one = isinstance(prompt, str) or isinstance(prompt[0], int)
        return cast("list[str] | list[list[int]]", [prompt] if is_one else prompt)


class Part(BaseModel):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A message of a conversation."""

    role: str
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """All text of the message."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class ChatBody(Body):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Limit | None = None

    @property
    def limit(self) -> int | None:
        """See `Body`; the newer name goes first."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def prompts(self) -> list[str]:
        """The conversation as one prompt."""
        return [chat_text((message.role, message.text) for message in self.messages)]


B = TypeVar("B", bound=Body)


def parse(kind: type[B], raw: bytes) -> B:
    """Read a body; raises `ApiError` (400) that names the first field that is wrong."""
    try:
        body = kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or None
        raise ApiError(400, f"{where}: {first['msg']}" if where else first["msg"], where) from None
    if body.logprobs or (isinstance(body, CompletionBody) and body.echo):
        what = "logprobs" if body.logprobs else "echo"
        raise ApiError(400, f"{what} is not supported: the answers are filler text", what)
    return body
