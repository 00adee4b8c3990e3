"""An evaluation in sentences and tables: terminal, notebook and page say them in the same words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from steadytd.base.finding import Finding
from steadytd.base.numbers import about, count, interval, number, rounded
from steadytd.evaluation.checks import serious_first
from steadytd.evaluation.decide import Decision
from steadytd.evaluation.quantiles import ReturnLevel
from steadytd.evaluation.result import Evaluation
from steadytd.evaluation.sensitivity import MOST, Sensitivity
from steadytd.report.text import Line, Table, table_of

NAMED = 30  # targets that have a line or a dot of their own
FEW = 4  # of them on the first screen of a terminal
MANY = 6  # targets beyond which the terminal shows only the recommended learner of each
LEVEL = "95\N{NO-BREAK SPACE}%\N{NO-BREAK SPACE}interval"  # heading that stays on one line
PER_STEP = "reward\N{NO-BREAK SPACE}per\N{NO-BREAK SPACE}step"
LOGGED = "(as logged)"  # the policy that made the log, in tables of policies
OFF_BY = (1.1, 1.25)  # factors for which the range of values is shown
REMARKS = {"sampling": "sampling", "solved": "solved", "action": "by action", "online": "online"}
LEADS = ("No decision about ", "The log does not show whether ", "")  # before a target's name
Row = dict[str, Any]


def estimate_text(value: float | None, lo: float, hi: float) -> str:
    """A value to the digits that its interval leaves.

    >>> estimate_text(19.29484, 18.8, 19.75), estimate_text(None, 0.0, 1.0)
    ('19.3', 'none')
    """
    if value is None or not math.isfinite(value):
        return "none"
    return rounded(value, (hi - lo) / 2.0)


def interval_text(lo: float | None, hi: float | None) -> str:
    """An interval for reading; "none" where an end is not known."""
    if lo is None or hi is None or not (math.isfinite(lo) and math.isfinite(hi)):
        return "none"
    return interval(lo, hi)


def size_text(e: Evaluation) -> str:
    """How much was logged."""
    return f"{count(e.log.rows, 'row')}, {count(e.log.episodes, 'episode')}"


# What comes first, and the rest


def answer(e: Evaluation, *, full: bool = True) -> list[Line | Table]:
    """Decisions, policies, what is assumed, the most serious finding, and what to log next.

    Without `full` of many targets only so many as a screen of a terminal has room for.
    """
    most = NAMED if full else FEW
    named = telling(e, most)
    lines: list[Line | Table] = []
    for one in answers(e):
        lines += [best_line(one)] * (len(e.targets) > 1)
        lines += decision_lines(one, named)
    if left := selection_text(e, most, "Lines"):
        lines.append(Line(f"{left} All targets: --json or --out."))
    for one in answers(e):
        lines.append(policies_table(one, named))
        if one.segments is not None:
            lines += [segments_table(one), Line(one.segments.text)]
    return [*lines, *closing_lines(e)]


def answers(e: Evaluation) -> list[Evaluation]:
    """The evaluation of every reward; itself where it has one."""
    return list(e.rewards.values()) or [e]


def rest(e: Evaluation) -> list[Line | Table | str]:
    """All findings, learners, and what the answer rests on."""
    named = telling(e)
    warnings, notes = findings_by_level(e)
    parts: list[Line | Table | str] = [
        *finding_lines("Warnings", warnings, MANY),
        *finding_lines("Notes", notes, 1),
        values_table(e, named, few=len(e.targets) > MANY),
        overlap_table(e, named),
    ]
    if not e.log.average:
        parts.append(sensitivity_table(e, named))
    if spread_names(e):
        parts.append(spread_table(e, named))
    if not e.log.average:
        parts.append(stability_table(e, named))
    if e.log.behavior_estimated:
        parts.append(calibration_table(e))
    return [*parts, Line("", head="What the numbers mean"), *e.notes]


# Sentences


def best_line(e: Evaluation) -> Line:
    """Which of several targets is the best."""
    reward = f"{e.reward_name}: " if e.reward else ""
    return Line(f"{reward}{e.best.text}", "good" if e.best.target is not None else "care")


def ranked(e: Evaluation) -> list[Decision]:
    """The decisions: trusted ones first, the best first."""
    return sorted(e.decisions, key=_worse)


def decision_lines(e: Evaluation, targets: Sequence[str] | None = None) -> list[Line]:
    """One decision per target, the best first; grey (bad) where it cannot be relied on."""
    return [decision_line(e, d) for d in ranked(e) if targets is None or d.target in targets]


def decision_line(e: Evaluation, d: Decision) -> Line:
    """A target's decision, or why there is none."""
    grade, text = "bad", d.headline
    if d.trusted:
        grade = {"better": "good", "worse": "worse", "undecided": "care"}[d.decision]
    else:
        reasons = [w for w in e.warnings if w.level == "warning" and w.target in ("", d.target)]
        first = serious_first(reasons)[0]
        more = len(d.reasons) - 1
        others = f" ({more} more warning{'s' if more > 1 else ''})" if more else ""
        text = f"No decision about {d.target}. {first.text} {first.remedy}{others}".strip()
    reward = f"{e.reward_name}: " if e.reward else ""
    lead = next(len(reward + lead) for lead in LEADS if text.startswith(lead + d.target))
    return Line(reward + text, grade, name=(lead, lead + len(d.target)))


def log_next(e: Evaluation) -> str:
    """What to log next about the open decision that needs least; nothing where none is known."""
    advice = [e.log_next(name) for name in e.targets]
    if all(one.episodes == 0 for one in advice):
        return "nothing more is needed for these decisions."
    wanted = [one for one in advice if one.text and one.episodes != 0]
    needs = [one.episodes or one.now_needed or math.inf for one in wanted]
    return wanted[needs.index(min(needs))].text if wanted else ""


def closing_lines(e: Evaluation) -> list[Line]:
    """What stands below the table of policies: a heading and a sentence each."""
    lines = [Line(" ".join(e.log.notes), head="Read as")] if e.log.notes else []
    lines.append(Line(f"{'; '.join(e.assumptions)}.", head="Assumed"))
    for found in serious_first(e.warnings)[:1]:  # a warning before a note
        about_target = f"{found.target}: " if found.target else ""
        lines.append(Line(f"{about_target}{found.text} {found.remedy}".strip(), head=found.code))
    wanted = log_next(e)
    return [*lines, Line(wanted, head="To log next")] if wanted else lines


def grounds_line(e: Evaluation) -> Line:
    """How much of the log is like the targets' own data."""
    what, ess = ("rows", "ess_step") if e.log.average else ("episodes", "ess_trajectory")
    rows = e.overlap.sort(ess, descending=True).head(FEW).iter_rows(named=True)
    found = [f"{about(o[ess])} of {o['target']}'s own" for o in rows]
    return Line(f"{size_text(e)}; the {what} tell as much as {', '.join(found)}.", head="Rests on")


def findings_by_level(e: Evaluation) -> tuple[list[Finding], list[Finding]]:
    """The warnings and the notes, the most serious first."""
    found = serious_first(e.warnings)
    warnings = [w for w in found if w.level == "warning"]
    return warnings, [w for w in found if w.level != "warning"]


def grouped(found: list[Finding]) -> list[Row]:
    """Findings of one code and one remedy together: code, remedy, items of target and text."""
    groups: dict[tuple[str, str], Row] = {}
    for one in found:
        empty: Row = {"code": one.code, "remedy": one.remedy, "items": []}
        group = groups.setdefault((one.code, one.remedy), empty)
        group["items"].append({"target": one.target, "text": one.text})
    return list(groups.values())


def finding_lines(title: str, found: list[Finding], most: int = MANY) -> list[Line]:
    """Findings of one code together: the first `most` in full, and how many more there are."""
    lines = [Line("", head=title)] if found else []
    for group in grouped(found):
        items = group["items"]
        for one in items[:most]:
            head = f"  {group['code']} {one['target']}".rstrip()
            more = f" (And {len(items) - most} more of this kind.)" if len(items) > most else ""
            remedy = f"{more} {group['remedy']}" if one is items[:most][-1] else ""
            lines.append(Line(f"{one['text']}{remedy}".strip(), head=head))
    return lines


def stability_lines(e: Evaluation) -> list[Line]:
    """One line per target about plain TD on this log."""
    shares = e.stability["td_stable_share"]
    return [_stability(row, share) for row, share in zip(stability_rows(e), shares, strict=True)]


def _stability(row: Row, share: float | None) -> Line:
    known = "" if row["interval"] == "none" else f" (95 % interval {row['interval']})"
    enough = (
        f"every penalty above {row['threshold']}{known} makes it stable. Automatic choice: "
        f"{row['eta']}."
    )
    if row["word"] != "stable":
        text = f"plain TD is {row['word']} on this log; {enough}"
        return Line(text, "bad", row["target"])
    if share is not None and share < 0.95:
        text = f"plain TD is stable on this log, but only in {row['share']} of its resamples; "
        return Line(text + enough, "care", row["target"])
    return Line("plain TD is stable on this log, without any penalty.", "good", row["target"])


def telling(e: Evaluation, most: int = NAMED) -> list[str]:
    """All targets, in order; of more than `most` the best and then the most doubtful ones.

    The best: trusted ones first, then by the difference to the policy that made the log. The most
    doubtful: those that are not trusted first, then by how wide the difference's interval is.
    """
    if len(e.targets) <= most:
        return e.targets
    best = [d.target for d in ranked(e)][: most - most // 2]
    doubtful = [d.target for d in sorted(e.decisions, key=_surer) if d.target not in best]
    return best + doubtful[: most // 2]


def _worse(d: Decision) -> tuple[bool, float]:
    return not d.trusted, -d.difference if math.isfinite(d.difference) else math.inf


def _surer(d: Decision) -> tuple[bool, float]:
    width = d.hi - d.lo
    return d.trusted, -width if math.isfinite(width) else -math.inf


def selection_text(e: Evaluation, most: int, what: str) -> str:
    """Which of many targets are shown; nothing where that is all."""
    if len(e.targets) <= most:
        return ""
    return (
        f"{what} of {most} of {len(e.targets):,} targets: the {most - most // 2} best, trusted "
        f"ones first, and the {most // 2} most doubtful."
    )


# Tables: of all targets, or of those that are named


def _some(rows: list[Row], targets: Sequence[str] | None) -> list[Row]:
    return rows if targets is None else [row for row in rows if row["target"] in {LOGGED, *targets}]


def policies_table(e: Evaluation, targets: Sequence[str] | None = None) -> Table:
    """The policy that made the log, then every target."""
    heads = {
        "target": "policy", "value": f">{PER_STEP}" if e.log.average else ">value",
        "interval": f">{LEVEL}", "difference": ">difference",
        "difference_interval": f">{LEVEL}", "trust": "trusted",
    }  # fmt: skip
    return table_of(e.reward_name, heads, _some(policy_rows(e), targets))


def policy_rows(e: Evaluation) -> list[Row]:
    """The policy that made the log, then every target: value, and the difference to it."""
    own = e.behavior
    first = {
        "target": LOGGED,
        "value": estimate_text(*own),
        "interval": interval_text(own.lo, own.hi),
    }
    rows = [first | dict.fromkeys(("difference", "difference_interval", "trust"), "")]
    for d in ranked(e):
        r = e.recommended[d.target]
        rows.append(
            {
                "target": d.target,
                "value": estimate_text(r.value, r.lo, r.hi),
                "interval": interval_text(r.lo, r.hi),
                "difference": "the same" if d.same else estimate_text(d.difference, d.lo, d.hi),
                "difference_interval": "" if d.same else interval_text(d.lo, d.hi),
                "trust": "yes" if d.trusted else "no",
            }
        )
    return rows


def segments_table(e: Evaluation) -> Table:
    """One row per segment and target; of one target without its name."""
    rows = [
        {
            "segment": r.segment,
            "target": r.target,
            "units": f"{r.units:,}",
            "value": estimate_text(r.value, r.lo, r.hi),
            "difference": estimate_text(r.difference, r.difference_lo, r.difference_hi),
            "interval": interval_text(r.difference_lo, r.difference_hi),
            "decision": r.decision if r.trusted else f"not trusted: {', '.join(r.reasons)}",
        }
        for r in (() if e.segments is None else e.segments.rows)
    ]
    heads = {
        "segment": "segment", "target": "target", "units": ">units", "value": ">value",
        "difference": ">difference", "interval": f">{LEVEL.replace('interval', 'joint interval')}",
        "decision": "decision",
    }  # fmt: skip
    if len(e.targets) == 1:
        del heads["target"]
    name = "" if e.segments is None else e.segments.column
    return table_of(f"{e.reward_name} by {name}".strip(), heads, rows)


def values_table(
    e: Evaluation, targets: Sequence[str] | None = None, *, few: bool = False
) -> Table:
    """Every learner's value, the recommended one first; with `few` only the recommended ones."""
    heads = {
        "target": "target", "learner": "learner", "value": ">value", "interval": f">{LEVEL}",
        "reached": ">reached", "choices": "+numbers used", "remark": "how",
    }  # fmt: skip
    title = "Values"
    if few:
        title = "Values of the recommended learners (all learners: --json or --out)"
    rows = _some(recommended_first(value_rows(e)), targets)
    return table_of(title, heads, [r for r in rows if r["recommended"] or not few], named=1)


def value_rows(e: Evaluation) -> list[Row]:
    """One row per target and learner.

    `value` is the fixed point, to which the interval belongs; `reached` is where an online learner
    ended.
    """
    return [_value(e, v) for v in e.values.iter_rows(named=True)]


def recommended_first(rows: list[Row]) -> list[Row]:
    """Within each target the recommended learner comes first."""
    places = {target: i for i, target in enumerate(dict.fromkeys(row["target"] for row in rows))}
    return sorted(rows, key=lambda row: (places[row["target"]], not row["recommended"]))


def _value(e: Evaluation, v: Row) -> Row:
    lo, hi, ended = v["lo"], v["hi"], v["diverged"] is None
    fixed = v["fixed_point"] if v["fixed_point"] is not None else v["value"]
    online = v["kind"] == "online" and ended
    unstable = (
        {"action": "does not settle", "online": "unstable here"} if v["stable"] is False else {}
    )
    remark = (REMARKS | unstable)[v["kind"]]
    if v["eta"]:
        remark = f"eta {v['eta']:.3g}, {remark}"
    chosen = {name: v[name] for name in ("eta", "ratio", "alpha") if v[name] is not None}
    return {
        "target": v["target"],
        "learner": v["learner"],
        "value": estimate_text(fixed, lo, hi) if ended else "overflowed",
        "interval": interval_text(lo, hi),
        "reached": estimate_text(v["value"], lo, hi) if online else "",
        "choices": ", ".join(f"{name} {value:.3g}" for name, value in chosen.items()),
        "remark": f"{remark}\n{e.recommended[v['target']].reason}" if v["recommended"] else remark,
        "recommended": v["recommended"],
    }


def overlap_table(e: Evaluation, targets: Sequence[str] | None = None) -> Table:
    """How much of the log is like the targets' own."""
    rows = [
        {
            "target": o["target"],
            "rows": f"{o['ess_step']:,.0f} ({o['ess_step_share']:.0%})",
            "episodes": f"{o['ess_trajectory']:,.1f} ({o['ess_trajectory_share']:.1%})",
            "largest": f"{o['rho_max']:.3g}\n"
            + (f"row {o['rho_max_row']:,}" if o["rho_max_row"] >= 0 else ""),
            "zeros": f"{o['zero_share']:.1%}",
            "mean": f"{o['rho_mean']:.3f}",
        }
        for o in e.overlap.iter_rows(named=True)
    ]
    heads = {
        "target": "target", "rows": ">effective rows", "episodes": ">effective episodes",
        "largest": ">largest ratio", "zeros": ">ratio 0", "mean": ">mean ratio",
    }  # fmt: skip
    return table_of(f"Overlap: {size_text(e)}", heads, _some(rows, targets))


def stability_table(e: Evaluation, targets: Sequence[str] | None = None) -> Table:
    """What the data say about plain TD, and which penalty is enough."""
    heads = {
        "target": "target", "word": "!plain TD", "share": ">in resamples",
        "threshold": ">stable from eta", "interval": f">{LEVEL}", "eta": ">chosen eta",
        "ratio": "+>ratio for tdc",
    }  # fmt: skip
    return table_of("Stability", heads, _some(stability_rows(e), targets))


def stability_rows(e: Evaluation) -> list[Row]:
    """What the data say about plain TD and its penalty."""
    rows = []
    for s in e.stability.iter_rows(named=True):
        lo, hi = s["eta_pd_lo"], s["eta_pd_hi"]
        known = not (lo is None or hi is None or math.isnan(lo) or math.isnan(hi))
        limits = interval_text(max(lo, 0.0), hi) if known and hi > 0.0 else "0" if known else "none"
        share, unstable = s["td_stable_share"], "unstable" if s["slowest"] < 0.0 else "not stable"
        rows.append(
            {
                "target": s["target"],
                "word": "stable" if s["td_stable"] else unstable,
                "share": "unknown" if share is None else f"{share:.0%}",
                "threshold": number(s["eta_pd"]) if s["eta_pd"] > 0.0 else "0",
                "interval": limits,  # below 0 no penalty is needed
                "eta": number(s["eta"]),
                "ratio": f"{s['ratio']:g}",
            }
        )
    return rows


def calibration_table(e: Evaluation) -> Table:
    """Where behaviour is estimated: of what was predicted with this chance, how much happened?"""
    rows = [
        {
            "range": f"{b['low']:.1f} to {b['high']:.1f}",
            "predicted": f"{b['predicted']:.1%}",
            "happened": f"{b['happened']:.1%}",
            "pairs": f"{b['pairs']:,}",
            "fine": "" if b["fine"] else "off",
        }
        for b in e.log.behavior_numbers.get("bins") or []
        if b["pairs"]
    ]
    heads = {
        "range": ">estimated chance of an action", "predicted": ">mean", "happened": ">happened",
        "pairs": ">rows and actions", "fine": "!",
    }  # fmt: skip
    return table_of("Calibration of the estimated behaviour policy", heads, rows)


def sensitivity_table(e: Evaluation, targets: Sequence[str] | None = None) -> Table:
    """How wrong the ratios would have to be, and what values they would allow."""
    rows = []
    for name in e.targets:
        s = e.sensitivity(name)
        ranges = {b.Lambda: interval_text(b.lo, b.hi) for b in s.curve}
        shown = {str(factor): ranges.get(factor, "not known") for factor in OFF_BY}
        rows.append({"target": name, "turns": turns(s), **shown})
    ends = {str(factor): f"+>value if off by {factor}" for factor in OFF_BY}
    heads = {"target": "target", "turns": ">factor", **ends}
    return table_of("Wrong ratios that would turn the decision", heads, _some(rows, targets))


def turns(s: Sensitivity) -> str:
    """The factor at which target and behaviour change places."""
    if s.alike:
        return "no difference"
    if math.isnan(s.Lambda):
        return "not known"
    if math.isinf(s.Lambda):
        return f"more than {MOST:.0f}"
    return f"{s.Lambda:.3g}" if s.sharp else f"at least {s.Lambda:.3g}"


def spread_table(e: Evaluation, targets: Sequence[str] | None = None) -> Table:
    """What a return may be beside its mean: quantiles, and the mean of the worst tenth."""
    known = targets or e.targets
    rows = [[s.target, *map(_level, s.rows)] for s in e.spreads if s.rows and s.target in known]
    heads = ("target", *(f">{name}" for name in spread_names(e)))
    return Table("Quantiles of the return of one episode", heads, rows)


def _level(row: ReturnLevel) -> str:
    """A quantile, and on a second line its interval."""
    if not math.isfinite(row.value):
        return "not known"
    if math.isfinite(row.lo) and math.isfinite(row.hi):
        value = estimate_text(row.value, row.lo, row.hi)
        return f"{value}\n{interval_text(row.lo, row.hi)}"
    for known, word in ((row.lo, "from"), (row.hi, "up to")):  # the other end is not in the log
        if math.isfinite(known):
            reach = abs(row.value - known)
            return f"{rounded(row.value, reach)}\n{word} {rounded(known, reach)}"
    return number(row.value)


def spread_names(e: Evaluation) -> list[str]:
    """The columns of `spread_table`; none where no target has any."""
    rows = next((s.rows for s in e.spreads if s.rows), ())
    said = {"quantile": "{:.0%}", "cvar": "worst {:.0%}, mean"}
    return [said[row.what].format(row.level) for row in rows]
