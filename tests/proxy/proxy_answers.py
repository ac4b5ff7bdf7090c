"""What is asked, and pieces of what a server streams."""

import json

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
DONE = b"data: [DONE]\n\n"


def chunk(content="x", reason=None, usage=..., **more):
    delta = {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": reason}], "model": "m-1"} | more
    body = delta if usage is ... else delta | {"usage": usage}
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def usage(prompt, output, **more):
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **more}


def last(prompt, output, **more):
    return b"data: " + json.dumps({"choices": [], "usage": usage(prompt, output, **more)}).encode() + b"\n\n"
