"""Ranking metrics as papers on news recommendation define them: per request, averaged over requests (Wu et al. 2020,
MIND).
"""

from __future__ import annotations

import numpy as np

Ranking = dict[str, float]


def of_request(score: np.ndarray, label: np.ndarray) -> Ranking:
    """AUC, MRR (the mean of 1 / rank over the clicked ones), nDCG@5 and nDCG@10 of one request; equal scores count as
    the order that suits the model least. Needs a clicked and an unclicked impression.
    """
    order = np.lexsort((label, -score))
    gains = label[order]
    places = np.arange(1, len(gains) + 1)
    clicks = gains.sum()
    below = np.array(
        [(score[label == 0] < one).sum() + (score[label == 0] == one).sum() / 2 for one in score[label == 1]]
    )
    result = {"auc": float(below.sum() / (clicks * (len(gains) - clicks)))}
    result["mrr"] = float((gains / places).sum() / clicks)
    discount = 1 / np.log2(places + 1)
    for n in (5, 10):
        ideal = discount[: min(n, int(clicks))].sum()
        result[f"ndcg@{n}"] = float((gains[:n] * discount[:n]).sum() / ideal)
    return result


def mean(request: np.ndarray, score: np.ndarray, label: np.ndarray) -> Ranking:
    """The mean over requests that have clicked and unclicked impressions; `request` names the request of each row."""
    order = np.argsort(request, kind="stable")
    bounds = np.flatnonzero(np.diff(request[order])) + 1
    parts = [rows for rows in np.split(order, bounds) if 0 < label[rows].sum() < len(rows)]
    if not parts:
        return {}
    scored = [of_request(score[rows], label[rows]) for rows in parts]
    return {name: float(np.mean([one[name] for one in scored])) for name in scored[0]}
