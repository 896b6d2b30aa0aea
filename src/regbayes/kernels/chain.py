"""Hidden Markov chains, one sequence at a time: filter, smooth, draw, find the best path.

A chain is `start[K]`, `transitions[K, K]` (rows sum to one, or less; zeros are welcome) and
`log_likelihoods[T, K]`, all that these kernels know of emissions. :mod:`regbayes.kernels.batch`
runs them over many sequences. Most filters and smoothers take `transitions[G, K, K]`, a matrix for
each of G segments of equal length: that of step t rules the transition out of it.

The fast recursions work with scaled probabilities and say when an underflow might have mattered;
then the slow ones, in logarithms, take over. An impossible sequence has log-likelihood -inf, no
posterior (zeros) and no path (-1).
"""

import math

import numpy as np

from regbayes.kernels._jit import fused_kernel, kernel
from regbayes.kernels._vectors import power_of_two
from regbayes.kernels.linalg import row_times_matrix

_LEAST = 1e-280  # below, products lose digits
_FLOOR = 1e-290  # a filtered probability that may have lost its value
_MATTERS = 1e-15  # share of the posterior that may be lost unseen


@fused_kernel
def exp_of_negative(x):
    """exp by Cody & Waite's reduction and Moshier's rational function (Cephes).

    A compiler can vectorise it; the library's is a call. Off by one unit in the last place at
    most; zero below -708.
    """
    bounded = max(x, -708.0)
    n = np.floor(bounded * 1.4426950408889634 + 0.5)
    r = (bounded - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6
    rr = r * r
    p = 1.26177193074810590878e-4 * rr + 3.02994407707441961300e-2
    p = r * (p * rr + 1.0)
    q = 3.00198505138664455042e-6 * rr + 2.52448340349684104192e-3
    q = (q * rr + 2.27265548208155028766e-1) * rr + 2.0
    value = (1.0 + 2.0 * p / (q - p)) * power_of_two(np.int64(n))
    return value if bounded > -708.0 else 0.0


@fused_kernel
def scale_likelihoods(log_likelihoods, likelihoods, shifts):
    """Likelihoods with a maximum of one in every row, and the logarithms of the units."""
    n_steps, n_states = log_likelihoods.shape
    for t in range(n_steps):
        best = -np.inf
        for k in range(n_states):
            best = max(best, log_likelihoods[t, k])
        shifts[t] = best if best > -np.inf else 0.0
        for k in range(n_states):
            likelihoods[t, k] = exp_of_negative(log_likelihoods[t, k] - shifts[t])


@fused_kernel
def filter_scaled(start, transitions, likelihoods, filtered, totals):
    """p(z_t | x_1..t) into `filtered` and p(x_t | x_1..t-1) into `totals`; false if unsafe.

    `likelihoods[t]` may be in any unit, best with a maximum of one. A probability that underflows
    is lost to all later steps; the lost paths can gain on the others by 1 / total a step at most,
    which bounds what they would hold now. When every transition is possible, mass comes back
    from the other states at once and the loss cannot build up.
    """
    n_steps, n_states = likelihoods.shape
    n_matrices = transitions.shape[0]
    mixes = transitions.min() > 1e-90
    rarest = 1.0
    if not mixes:
        for p in transitions.flat:
            if p > 0.0:
                rarest = min(rarest, p)
    lost, faintest = 0.0, 1.0
    for t in range(n_steps):
        row = filtered[t]
        if t == 0:
            for j in range(n_states):
                row[j] = start[j]
        else:
            matrix = transitions[(t - 1) * n_matrices // n_steps]
            row_times_matrix(filtered[t - 1], matrix, row)
        least = 1.0
        if not mixes:
            for j in range(n_states):
                if row[j] > 0.0:
                    least = min(least, row[j] * likelihoods[t, j])
        total = 0.0
        for j in range(n_states):
            row[j] *= likelihoods[t, j]
            total += row[j]
        if not total > (1e-180 if mixes else _LEAST):
            return False
        if not mixes:
            # At this step, or on the way to it.
            if min(least / max(total, 1.0), faintest * rarest) < _FLOOR:
                lost += n_states * _FLOOR
            faintest = least / total
            lost /= min(total, 1.0)
            if lost > _MATTERS:
                return False
        totals[t] = total
        gain = 1.0 / total
        for j in range(n_states):
            row[j] *= gain
    return True


@fused_kernel
def smooth_scaled(transitions, transposed, likelihoods, totals, filtered, moves, entropies):
    """p(z_t | x_1..T) in place of `filtered`; adds to `moves` and `entropies`, unless empty.

    `moves[s, i, j]` is the sum over the steps t of segment s of p(z_t = i, z_t+1 = j | x), and
    `entropies[s, i, j]` that of -p(i, j) log p(j | i), whose sum is the entropy of the path given
    its first state. `transposed` has the transposed matrices, so that memory is read in order.
    """
    n_steps, n_states = filtered.shape
    n_matrices, n_segments = transitions.shape[0], moves.shape[0]
    back = np.ones(n_states)  # p(x_t+1..T | z_t) / p(x_t+1..T | x_1..t), at most 1 / filtered
    held = 0  # steps whose moves are to be counted, four at once
    rows, aheads = np.empty((4, n_states)), np.empty((4, n_states))
    logs = np.empty(n_states)
    for t in range(n_steps - 2, -1, -1):
        gain = 1.0 / totals[t + 1]
        ahead = aheads[held]
        for j in range(n_states):
            ahead[j] = back[j] * likelihoods[t + 1, j] * gain
        row_times_matrix(ahead, transposed[t * n_matrices // n_steps], back)
        row = filtered[t]
        if n_segments > 0:
            segment = t * n_segments // n_steps
            for i in range(n_states):
                rows[held, i] = row[i]
            held += 1
            if held == 4 or t == 0 or (t - 1) * n_segments // n_steps < segment:
                _add_products(rows, aheads, held, moves[segment])
                held = 0
        if entropies.shape[0] > 0:
            # p(j | i) = transitions[i, j] ahead[j] / back[i]: logarithms of states will do.
            terms = entropies[t * n_segments // n_steps]
            for j in range(n_states):
                logs[j] = math.log(ahead[j]) if ahead[j] > 0.0 else 0.0
            for i in range(n_states):
                if row[i] > 0.0 and back[i] > 0.0:
                    log_back = math.log(back[i])
                    for j in range(n_states):
                        terms[i, j] -= row[i] * ahead[j] * (logs[j] - log_back)
        total = 0.0
        for i in range(n_states):
            # Where no path comes, `back` may be infinite.
            back[i] = back[i] if row[i] > 0.0 else 0.0
            row[i] *= back[i]
            total += row[i]
        gain = 1.0 / total
        for i in range(n_states):
            row[i] *= gain
    for s in range(n_segments):
        matrix = transitions[s * n_matrices // n_segments]
        for i in range(n_states):
            for j in range(n_states):
                moves[s, i, j] *= matrix[i, j]
                if entropies.shape[0] > 0:
                    own = moves[s, i, j] * math.log(matrix[i, j]) if matrix[i, j] > 0.0 else 0.0
                    entropies[s, i, j] = matrix[i, j] * entropies[s, i, j] - own


@fused_kernel
def _add_products(rows, columns, n, out):
    """Adds the outer products of the first n of four rows and columns, in one go through `out`."""
    for r in range(n, 4):
        rows[r] = columns[r] = 0.0
    for i in range(out.shape[0]):
        a, b, c, d = rows[0, i], rows[1, i], rows[2, i], rows[3, i]
        for j in range(out.shape[1]):
            out[i, j] += (a * columns[0, j] + b * columns[1, j]) + (
                c * columns[2, j] + d * columns[3, j]
            )


@kernel
def _left(p, width):
    """What a slice has left of the transition's probability."""
    if width == 0.0:
        return p
    return p / min(p, width)


@kernel
def filter_log(start, transitions, ranked, order, cuts, width, log_likelihoods, log_filtered):
    """log p(z_t | x_1..t) up to a constant for each t, the largest 0; returns log p(x).

    Only transitions with probability above `cuts[t]` may be taken into step t; `ranked[i]` has
    row i in descending order and `order[i]` the states it belongs to, so that the others cost
    nothing. `width` as in :func:`draw_slices`. `log_filtered` may be `log_likelihoods` itself.
    """
    n_steps, n_states = log_likelihoods.shape
    log_total = 0.0
    ahead = np.empty(n_states)
    reached = np.empty(n_states, dtype=np.bool_)
    for t in range(n_steps):
        row = log_filtered[t]
        if t == 0:
            for j in range(n_states):
                if start[j] > cuts[0]:
                    row[j] = log_likelihoods[0, j] + math.log(_left(start[j], width))
                else:
                    row[j] = -np.inf
        else:
            last = log_filtered[t - 1]
            for j in range(n_states):
                ahead[j] = 0.0
                reached[j] = False
            for i in range(n_states):
                if last[i] == -np.inf:
                    continue
                weight = math.exp(last[i])
                for r in range(n_states):
                    p = ranked[i, r]
                    if p <= cuts[t]:
                        break
                    ahead[order[i, r]] += weight * _left(p, width)
                    reached[order[i, r]] = True
            for j in range(n_states):
                if not reached[j]:
                    row[j] = -np.inf
                elif ahead[j] > 1e-250:
                    row[j] = math.log(ahead[j]) + log_likelihoods[t, j]
                else:  # reached from unlikely states only
                    log_ahead = _log_ahead(last, transitions[:, j], cuts[t], width)
                    row[j] = log_ahead + log_likelihoods[t, j]
        best = row.max()
        if not best > -np.inf:
            return -np.inf
        log_total += best
        for j in range(n_states):
            row[j] -= best
    total = 0.0
    for j in range(n_states):
        total += math.exp(log_filtered[n_steps - 1, j])
    return log_total + math.log(total)


@kernel
def filter_all_log(log_start, log_transitions, log_likelihoods, log_filtered):
    """As `filter_log` without slices, of `log_transitions[G, K, K]`, by logarithms throughout.

    They need not be of probabilities: a tilted chain may be so steep that not all its transitions
    are floating point numbers.
    """
    n_steps, n_states = log_likelihoods.shape
    log_total = 0.0
    for t in range(n_steps):
        row = log_filtered[t]
        matrix = log_transitions[max(t - 1, 0) * log_transitions.shape[0] // n_steps]
        for j in range(n_states):
            ahead = log_start[j]
            if t > 0:
                last = log_filtered[t - 1]
                high = (last + matrix[:, j]).max()
                ahead = -np.inf
                if high > -np.inf:
                    total = 0.0
                    for i in range(n_states):
                        total += math.exp(last[i] + matrix[i, j] - high)
                    ahead = high + math.log(total)
            row[j] = ahead + log_likelihoods[t, j]
        best = row.max()
        if not best > -np.inf:
            return -np.inf
        log_total += best
        for j in range(n_states):
            row[j] -= best
    total = 0.0
    for j in range(n_states):
        total += math.exp(log_filtered[n_steps - 1, j])
    return log_total + math.log(total)


@kernel
def _log_ahead(last, column, cut, width):
    """log of the mass that enters a state, whose column of the matrix it is, by logarithms."""
    best = -np.inf
    for i in range(column.shape[0]):
        if column[i] > cut:
            best = max(best, last[i] + math.log(_left(column[i], width)))
    if best == -np.inf:
        return best
    total = 0.0
    for i in range(column.shape[0]):
        if column[i] > cut:
            total += math.exp(last[i] + math.log(_left(column[i], width)) - best)
    return best + math.log(total)


@kernel
def smooth_log(log_transitions, log_likelihoods, log_filtered, moves, entropies):
    """p(z_t | x_1..T) in place of `log_filtered`; the rest as in `smooth_scaled`."""
    n_steps, n_states = log_filtered.shape
    n_matrices, n_segments = log_transitions.shape[0], moves.shape[0]
    back = np.zeros(n_states)
    ahead = np.empty(n_states)
    to_shares(log_filtered[n_steps - 1])
    for t in range(n_steps - 2, -1, -1):
        matrix = log_transitions[t * n_matrices // n_steps]
        for j in range(n_states):
            ahead[j] = back[j] + log_likelihoods[t + 1, j]
        row = log_filtered[t]
        best = -np.inf
        for i in range(n_states):
            high = -np.inf
            for j in range(n_states):
                high = max(high, matrix[i, j] + ahead[j])
            back[i] = high
            if high > -np.inf:
                total = 0.0
                for j in range(n_states):
                    total += math.exp(matrix[i, j] + ahead[j] - high)
                back[i] += math.log(total)
            best = max(best, row[i] + back[i])
        if n_segments > 0:
            s = t * n_segments // n_steps
            total = 0.0
            for i in range(n_states):
                total += math.exp(row[i] + back[i] - best)
            shift = best + math.log(total)
            for i in range(n_states):
                if row[i] > -np.inf:
                    for j in range(n_states):
                        p = math.exp(row[i] + matrix[i, j] + ahead[j] - shift)
                        moves[s, i, j] += p
                        if entropies.shape[0] > 0 and p > 0.0:
                            entropies[s, i, j] -= p * (matrix[i, j] + ahead[j] - back[i])
        for i in range(n_states):
            row[i] += back[i]
            back[i] -= best
        to_shares(row)


@kernel
def to_shares(weights):
    """exp(weights), normalised, in place."""
    best = weights.max()
    total = 0.0
    for i in range(weights.shape[0]):
        weights[i] = math.exp(weights[i] - best)
        total += weights[i]
    for i in range(weights.shape[0]):
        weights[i] /= total


@kernel
def draw_path(transitions, filtered, uniforms, path):
    """A path from its posterior, backwards from `filtered` (Scott 2002)."""
    n_steps, n_states = filtered.shape
    weights = np.empty(n_states)
    for t in range(n_steps - 1, -1, -1):
        total = 0.0
        for i in range(n_states):
            weights[i] = filtered[t, i]
            if t < n_steps - 1:
                weights[i] *= transitions[i, path[t + 1]]
            total += weights[i]
        path[t] = _at(weights, uniforms[t] * total)


@kernel
def draw_path_log(transitions, cuts, width, log_filtered, uniforms, path):
    """A path from its posterior, backwards from `log_filtered`, along transitions above `cuts`."""
    n_steps, n_states = log_filtered.shape
    weights = np.empty(n_states)
    for t in range(n_steps - 1, -1, -1):
        best = -np.inf
        for i in range(n_states):
            weights[i] = log_filtered[t, i]
            if t < n_steps - 1:
                p = transitions[i, path[t + 1]]
                weights[i] += math.log(_left(p, width)) if p > cuts[t + 1] else -np.inf
            best = max(best, weights[i])
        total = 0.0
        for i in range(n_states):
            weights[i] = math.exp(weights[i] - best) if weights[i] > -np.inf else 0.0
            total += weights[i]
        path[t] = _at(weights, uniforms[t] * total)


@kernel
def _at(weights, threshold):
    """The first index at which the running sum of `weights` exceeds the threshold."""
    running = 0.0
    last = -1
    for i in range(weights.shape[0]):
        if weights[i] > 0.0:
            running += weights[i]
            last = i
            if running > threshold:
                break
    return last


@kernel
def most_likely_path(log_start, log_transitions, log_likelihoods, pointers, path):
    """The path of highest posterior probability (Viterbi); returns log p(path, x)."""
    n_steps, n_states = log_likelihoods.shape
    score = log_start + log_likelihoods[0]
    best = np.empty(n_states)
    for t in range(1, n_steps):
        for j in range(n_states):
            best[j] = -np.inf
            pointers[t, j] = 0
        for i in range(n_states):
            for j in range(n_states):
                value = score[i] + log_transitions[i, j]
                if value > best[j]:
                    best[j] = value
                    pointers[t, j] = i
        for j in range(n_states):
            score[j] = best[j] + log_likelihoods[t, j]
    state = score.argmax()
    total = score[state]
    if not total > -np.inf:
        path[:] = -1
        return total
    for t in range(n_steps - 1, -1, -1):
        path[t] = state
        state = pointers[t, state]
    return total


@kernel
def draw_slices(start, transitions, starts, path, uniforms, width, cuts):
    """Slices u_t ~ U(0, min(p, width)), p = p(z_t | z_t-1), into `cuts`; returns the smallest.

    Given the slices, a transition may be taken if p > u_t, and weighs p / min(p, width). With a
    width of one that is 1 for all: the beam sampler of Van Gael et al. (2008), whose slice uses up
    the probability (the printed Eq. 25 of 000 counts it twice). But then a likely transition has
    a high slice that shuts out most others, and paths move little in a sweep; with a small width
    only rare transitions are shut out. A width of zero stands for no slices.
    """
    least = 1.0
    for s in range(starts.shape[0] - 1):
        for t in range(starts[s], starts[s + 1]):
            p = start[path[t]] if t == starts[s] else transitions[path[t - 1], path[t]]
            cuts[t] = uniforms[t] * min(p, width)
            least = min(least, cuts[t])
    return least


@kernel
def count_transitions(starts, path, n_states):
    """First states, then transitions out of each state, of shape (K + 1, K)."""
    counts = np.zeros((n_states + 1, n_states), dtype=np.int64)
    for s in range(starts.shape[0] - 1):
        for t in range(starts[s], starts[s + 1]):
            if t == starts[s]:
                counts[0, path[t]] += 1
            else:
                counts[1 + path[t - 1], path[t]] += 1
    return counts


@kernel
def advance(is_first, start, matrices, ends, log_likelihoods, log_filtered, filtered):
    """p(z_t | x_1..t) from p(z_t-1 | x_1..t-1), in place, for several chains side by side.

    Chain d has the states `ends[d]:ends[d + 1]` and its matrix follows the others in `matrices`.
    `log_filtered` is carried from step to step in logarithms, for a state that looks impossible
    now may turn out to be the right one; `filtered` is the answer.
    """
    at = 0
    for d in range(ends.shape[0] - 1):
        low, high = ends[d], ends[d + 1]
        n_states = high - low
        last, matrix = log_filtered[low:high].copy(), matrices[at : at + n_states * n_states]
        log_ahead = np.log(start[low:high])
        if not is_first:
            for j in range(n_states):
                ahead = 0.0
                for i in range(n_states):
                    ahead += math.exp(last[i]) * matrix[i * n_states + j]
                log_ahead[j] = math.log(ahead)
                if ahead < 1e-250:  # reached from unlikely states only
                    log_ahead[j] = _log_ahead(last, matrix[j::n_states], 0.0, 0.0)
        log_filtered[low:high] = log_ahead + log_likelihoods[low:high]
        if log_filtered[low:high].max() == -np.inf:  # impossible under this draw: unobserved
            log_filtered[low:high] = log_ahead
        log_filtered[low:high] -= log_filtered[low:high].max()
        filtered[low:high] = log_filtered[low:high]
        to_shares(filtered[low:high])
        at += n_states * n_states
