"""Requests to the server with contents mutated, for every kind of model: answered, or refused with a reason."""

from __future__ import annotations

import base64
import copy
import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

from fuzz.engine import REFUSED, UNCLEAR, Case, Target
from fuzz.model_files import change_json
from fuzz.readers import changed_bytes

LENGTH = 300  # of an instance: a parser takes the cube of it
LONGEST = 1 << 18  # bytes of a body
OPTIONS = {"probabilities": True, "scores": True, "k_best": 3, "explain": 2, "outputs": ["predict"]}


class Requests(Target):
    """What a server reads, asks and writes, without the server: threads do not survive a fork."""

    name = "requests"

    def __init__(self, only: str | None = None) -> None:
        from mercer.serve.kinds import INPUTS

        self.kinds = [only] if only else sorted(INPUTS)
        self.answers: dict[str, Any] = {}

    def load(self) -> None:
        from mercer.serve.kinds import answerer
        from reference.model_zoo import ZOO

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for kind in self.kinds:
                if kind not in self.answers:
                    self.answers[kind] = answerer(ZOO[kind].fit())

    def case(self, seed: int, number: int) -> Case:
        draw = random.Random(seed * 1_000_003 + number)
        kind = self.kinds[number % len(self.kinds)]
        answers = self.answers[kind]
        request = {"instances": copy.deepcopy(answers.example()) * draw.choice((1, 1, 2))}
        if draw.random() < 0.3:
            name = draw.choice(sorted(OPTIONS))
            request[name] = copy.deepcopy(OPTIONS[name])
        body = json.dumps(request).encode()
        for _ in range(draw.choice((1, 1, 2, 3))):
            change_json(request, draw)
            if len(changed := json.dumps(request).encode()) <= LONGEST:
                body = changed
        if draw.random() < 0.1:
            body = changed_bytes(body, draw)
        return {
            "kind": kind,
            "verb": draw.choice(["predict", *answers.verbs, *answers.specials]),
            "body": base64.b64encode(body).decode(),
        }

    def run(self, case: Case) -> str | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return asked(self.answers[case["kind"]], case["verb"], base64.b64decode(case["body"]))

    def subject(self, case: Case) -> str:
        return str(case["kind"])

    def smaller(self, case: Case) -> Iterator[Case]:
        """Without one of the fields or one of the instances."""
        try:
            request = json.loads(base64.b64decode(case["body"]))
        except ValueError:
            return
        fields = request if isinstance(request, dict) else {}
        cut = [{name: value for name, value in fields.items() if name != left_out} for left_out in fields]
        instances = fields.get("instances")
        for at in range(len(instances) if isinstance(instances, list) else 0):
            cut.append({**fields, "instances": instances[:at] + instances[at + 1 :]})
        for smaller in cut:
            yield {**case, "body": base64.b64encode(json.dumps(smaller).encode()).decode()}


def asked(answers: Any, verb: str, body: bytes) -> str | None:
    """What is wrong with the end of a request: an error that the server would not explain to its caller."""
    from mercer.serve.errors import RequestError
    from mercer.serve.forms import Limits
    from mercer.serve.kinds import SPECIAL_CALLS
    from mercer.serve.schemas import answer, dumps, instances_of, loads

    try:
        if verb in answers.specials:
            request = loads(body)
            if not isinstance(request, dict):
                return REFUSED
        else:
            ask, X, _ = instances_of(answers, verb, "application/json", body, {}, Limits(length=LENGTH))
    except (RequestError, RecursionError):
        return REFUSED
    except Exception as error:
        return f"unclear error: {type(error).__name__} while the request is read: {error}"
    try:
        found = SPECIAL_CALLS[verb](answers.model, request) if verb in answers.specials else answer(answers, ask, [X])
    except (RequestError, ValueError, TypeError, AttributeError, NotImplementedError) as error:
        return f"unclear error: {type(error).__name__}: {error}" if UNCLEAR.search(str(error)) else REFUSED
    except Exception as error:
        return f"unclear error: {type(error).__name__} while the model is asked: {error}"
    dumps(found)
    return None
