"""Hierarchical Dirichlet process over the rows of a transition matrix.

    beta ~ GEM(gamma),   row_j ~ DP(alpha, (1 - stay) beta + stay [j])

`rows[0]` is the row of first states, which has no `stay`; `rows[1 + j]` is that of state j. The
last entry of `beta` and of every row is what is left for states not seen yet. `stay` is the
self-transition bias of Fox et al. (2011), as a share.
"""

import math

import numpy as np

from regbayes.kernels._jit import kernel
from regbayes.kernels.random import draw_log_dirichlet, draw_log_gamma, draw_table_count


@kernel
def _base(beta, k, j, alpha, stay):
    """Concentration of row j (0: first states) at state k."""
    if j == 0:
        return alpha * beta[k]
    return alpha * ((1.0 - stay) * beta[k] + (stay if j == k + 1 else 0.0))


@kernel
def draw_tables(rng, counts, beta, alpha, stay, tables):
    """Tables of the restaurant franchise given the transitions (Teh et al. 2006).

    Adds to `tables[k]` those whose dish k came from `beta`; returns the number of all, of those in
    the first row, and of those that are due to `stay`.
    """
    n_all, n_first, n_stays = 0, 0, 0
    for j in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            if counts[j, k] == 0:
                continue
            base = _base(beta, k, j, alpha, stay)
            m = draw_table_count(rng, counts[j, k], base)
            n_all += m
            n_first += m if j == 0 else 0
            if j == k + 1 and stay > 0.0:
                from_beta = 0
                for _ in range(m):
                    if rng.random() * base < alpha * (1.0 - stay) * beta[k]:
                        from_beta += 1
                n_stays += m - from_beta
                m = from_beta
            tables[k] += m
    return n_all, n_first, n_stays


@kernel
def draw_rows(rng, counts, beta, alpha, stay, rows):
    """Every row given its transitions `counts[K + 1, K]`."""
    n_states = counts.shape[1]
    concentration = np.empty(n_states + 1)
    for j in range(counts.shape[0]):
        for k in range(n_states):
            concentration[k] = counts[j, k] + _base(beta, k, j, alpha, stay)
        concentration[n_states] = _base(beta, n_states, j, alpha, stay)
        _draw_shares(rng, concentration, rows[j])


@kernel
def _draw_shares(rng, concentration, out):
    draw_log_dirichlet(rng, concentration, out)
    for k in range(out.shape[0]):
        out[k] = math.exp(out[k])


@kernel
def break_sticks(rng, n_states, least, beta, rows, alpha, gamma, stay):
    """New states until no row has `least` or more left over, or the arrays are full.

    Works in place in the first `n_states + 1` entries; returns the new number of states.
    """
    while n_states + 1 < beta.shape[0]:
        most = 0.0
        for j in range(n_states + 1):
            most = max(most, rows[j, n_states])
        if most < least:
            break
        log_rest = -rng.standard_exponential() / gamma  # 1 - Beta(1, gamma)
        rest = beta[n_states]
        beta[n_states] = -rest * math.expm1(log_rest)
        beta[n_states + 1] = rest * math.exp(log_rest)
        for j in range(n_states + 1):
            left = rows[j, n_states]
            share = _draw_share(
                rng,
                _base(beta, n_states, j, alpha, stay),
                _base(beta, n_states + 1, j, alpha, stay),
            )
            rows[j, n_states] = left * share
            rows[j, n_states + 1] = left * (1.0 - share)
        n_states += 1
        concentration = np.empty(n_states + 1)
        for k in range(n_states + 1):
            concentration[k] = _base(beta, k, n_states, alpha, stay)
        _draw_shares(rng, concentration, rows[n_states, : n_states + 1])
    return n_states


@kernel
def _draw_share(rng, a, b):
    """Beta(a, b), also when both are tiny."""
    if not b > 0.0:
        return 1.0
    if not a > 0.0:
        return 0.0
    log_odds = draw_log_gamma(rng, a) - draw_log_gamma(rng, b)
    if log_odds > 0.0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1.0 + odds)
