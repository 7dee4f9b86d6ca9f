"""Before each call: requests that are told to wait would only wait, and streams do not end by themselves."""

import schemathesis

WAITS = ("follow", "wait")


@schemathesis.hook
def before_call(context, case, kwargs):
    for part in (case.query, case.body):
        if isinstance(part, dict):
            for name in WAITS:
                part.pop(name, None)
    for name in [name for name in case.headers or {} if name.lower() in ("accept", "prefer")]:
        del case.headers[name]
