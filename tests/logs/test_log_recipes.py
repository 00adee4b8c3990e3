"""The recipes of docs/logs.md for other programs: DuckDB, Delta Lake and ONNX."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.dataset as ds

import steadytd as st
from steadytd.logs.log import Log
from tests.support.log_reference import transitions
from tests.support.tables import Rule, sessions

PAGE = Path(__file__).parents[2] / "docs" / "logs.md"


def snippet(word: str) -> str:
    """The snippet of the page with this word."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [text] = [one for one in found if word in one]
    return str(text)


def recipe(word: str, **names: Any) -> dict[str, Any]:
    """What the snippet leaves, run with stand-ins for other programs."""
    exec(snippet(word), names)
    return names


def test_the_recipe_for_duckdb(tmp_path: Path) -> None:
    """A real table that lies in another order. In a process of its own: DuckDB is loud at exits."""
    path = st.sample_log(tmp_path / "log.parquet")
    code = f"""
import duckdb
import numpy as np
import steadytd as st
connection = duckdb.connect()
connection.execute("create table steps as select * from '{path}' order by reward, episode_id % 7")
{snippet("connection.sql")}
direct = st.open_log({str(path)!r}, discount=0.99)
for _ in range(2):
    for name in ("reward", "episode", "target_prob", "behavior_prob", "discount"):
        one, other = (
            np.concatenate([getattr(b, name) for b in some.batches()], axis=-1)
            for some in (log, direct)
        )
        np.testing.assert_array_equal(one, other)
try:
    list(st.open_log(lambda: connection.sql("select * from steps"), discount=0.99).batches())
except st.InputError as error:
    print(log.rows, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1].startswith("None the stream: column"), done.stderr


def test_the_recipe_for_delta(tmp_path: Path) -> None:
    """A stand-in with the same method: a pyarrow dataset of the table's files."""
    st.sample_log(tmp_path / "log.parquet")

    class DeltaTable:
        def __init__(self, name: str) -> None:
            assert name == "sessions"

        def to_pyarrow_dataset(self) -> Any:
            return ds.dataset(tmp_path)

    log: Log = recipe("DeltaTable", DeltaTable=DeltaTable, st=st)["log"]
    direct = st.open_log(tmp_path / "log.parquet", discount=0.99)
    assert transitions(log.batches()) == transitions(direct.batches())
    again = st.open_log(lambda: ds.dataset(tmp_path), discount=0.99)
    assert transitions(again.batches()) == transitions(direct.batches())


def test_the_recipe_for_onnx() -> None:
    """A stand-in with the methods of a session of onnxruntime, strict about types as it is."""
    frame = sessions(0, 200, missing=0.0).astype({"segment": object})
    model = Rule(["banner", "coupon", "none"], [0.2, 0.3, 0.5])
    kinds = {"segment": "tensor(string)", "basket": "tensor(float)"}

    class Session:
        def __init__(self, file: str) -> None:
            self.kinds = kinds if file == "policy.onnx" else {}

        def get_inputs(self) -> list[Any]:
            return [SimpleNamespace(name=name, type=kind) for name, kind in kinds.items()]

        def run(self, outputs: list[str], given: dict[str, Any]) -> list[Any]:
            assert outputs == ["probabilities"] and given.keys() == kinds.keys()
            for name, values in given.items():
                text = kinds[name] == "tensor(string)"
                assert values.dtype == (object if text else np.float32)
                assert values.shape[1] == 1 or len(kinds) == 1
                assert not text or set(values.ravel()) <= {"new", "old", "vip"}
            return [model.predict_proba(next(iter(given.values()))).astype(np.float32)]

    names = recipe("onnx_pipeline", onnxruntime=SimpleNamespace(InferenceSession=Session))
    options: Any = {"discount": 1.0, "columns": {"reward": "revenue"}}
    policies = {"onnx": names["onnx_pipeline"], "model": model}
    [batch] = st.open_log(frame, obs=["segment", "basket"], targets=policies, **options).batches()
    assert np.allclose(batch.target_prob[0], batch.target_prob[1], atol=1e-6)
    kinds = {"X": "tensor(float)"}
    numbers = pd.DataFrame({"basket": frame["basket"], "member": frame["member"]})
    log = st.open_log(
        pa.table(frame), obs=list(numbers), targets={"onnx": names["onnx_policy"]}, **options
    )
    [batch] = log.batches()
    assert set(np.round(batch.target_prob[0], 6)) == {0.2, 0.3, 0.5}
