"""A Flask application whose views talk with sessions, each request in a thread of the server.

    flask --app examples.flask_view run

Run as a program it shows itself, with Flask's test client. Django is the same: open the host once, where the process
begins (`AppConfig.ready`), and use its sessions in views.
"""

import atexit
import contextlib
import threading
from typing import Any

from flask import Flask, Response, jsonify, request

from exeunt import ReplyTimeout, SessionExists, approve_all
from exeunt.embed.threads import Session, SessionHost, ToolInvocation, open_host, tool
from exeunt.testing import ScriptedModel, call, say

STOCK = {"lamp": 3}
_stock = threading.Lock()


@tool
def reserve(article: str, count: int, invocation: ToolInvocation) -> str:
    """Reserve some of an article. Blocks as it likes, as with an ORM: it has a worker thread of its own."""
    with _stock:
        if STOCK.get(article, 0) < count:
            return f"There are only {STOCK.get(article, 0)}."
        STOCK[article] -= count
    return f"{count} reserved for {invocation.session.tenant}."


MODEL = ScriptedModel.per_session(
    [call("reserve", article="lamp", count=2), say("Two lamps are yours.")], cycle=True, record=False
)


class Process:
    """What the threads of this process share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._host: SessionHost | None = None

    def host(self) -> SessionHost:
        """The host, opened by the first request: after a server has forked its workers, and by one thread only."""
        with self._lock:
            if self._host is None:
                opened = contextlib.ExitStack()
                self._host = opened.enter_context(open_host())
                atexit.register(opened.close)
            return self._host


PROCESS = Process()


def session_of(customer: str) -> Session:
    """The one session of a customer, made when it is first needed, whichever thread is the first."""
    try:
        return PROCESS.host().create_session(
            model=MODEL,
            tools=[reserve],
            session_id=customer,
            tenant=customer,
            on_permission_request=approve_all,
        )
    except SessionExists:
        return PROCESS.host().get_session(customer)


app = Flask(__name__)


@app.post("/customers/<customer>/messages")
def say_to(customer: str) -> tuple[Response, int]:
    """Send a message and wait for the answer: the thread of the request waits, and nobody else."""
    try:
        reply = session_of(customer).send_and_wait(request.get_json()["prompt"], timeout=30)
    except ReplyTimeout as error:
        return jsonify(error=str(error)), 504
    return jsonify(answer=reply.content), 200


@app.get("/customers/<customer>/messages")
def read(customer: str) -> tuple[Response, int]:
    """What was said so far."""
    messages: list[dict[str, Any]] = [
        {"role": message.role, "content": message.content}
        for message in session_of(customer).history.messages()
        if message.content
    ]
    return jsonify(messages), 200


def main() -> None:
    """Show what two customers see who ask at the same time."""

    def ask(customer: str) -> None:
        answer = app.test_client().post(
            f"/customers/{customer}/messages", json={"prompt": "Two lamps, please."}
        )
        answers[customer] = (answer.status_code, answer.get_json())

    answers: dict[str, Any] = {}
    threads = [threading.Thread(target=ask, args=(customer,)) for customer in ("ada", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for customer in sorted(answers):
        print(customer, *answers[customer])
    tools = sorted(
        message["content"]
        for customer in answers
        for message in app.test_client().get(f"/customers/{customer}/messages").get_json()
        if message["role"] == "tool"
    )
    print(*(text.replace("ada", "one of them").replace("bob", "one of them") for text in tools))
    print(f"{STOCK['lamp']} lamp is left.")


if __name__ == "__main__":
    main()
