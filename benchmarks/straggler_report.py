"""What benchmarks/stragglers makes of the lines of bench_stragglers, and the tables that it prints. Pure.

A line is {mode, slowWorkers, batch, measured: {stepMs, gradientsPerMs, dropped, waiting, meanStaleness, maxStaleness}, simulated: {the same}}.
"""

import spread

SIDES = ("measured", "simulated")
FIGURES = ("stepMs", "gradientsPerMs", "dropped", "waiting", "meanStaleness", "maxStaleness")
TRANSPORTS = {"shm": "shared memory", "tcp": "TCP"}


def mode_row(transport, lines):
    """One mode's rounds: of each figure what was measured and simulated, and the rounds' ratios where there is something to divide by."""
    row = dict(mode=lines[0]["mode"], transport=transport, batch=lines[0]["batch"])
    for figure in FIGURES:
        values = {side: [line[side][figure] for line in lines] for side in SIDES}
        row[figure] = {side: spread.spread(values[side]) for side in SIDES}
        if all(values["simulated"]):
            row[figure]["ratio"] = spread.spread(spread.ratios(values["measured"], values["simulated"]))
    return row


def slow_row(transport, sigma, pairs):
    """Rounds of (a clean line, one with a slow worker): the slow step's time over the clean one's of the same round."""
    row = dict(mode=pairs[0][0]["mode"], transport=transport, sigma=sigma, rounds=len(pairs))
    for side in SIDES:
        clean, slow = ([pair[which][side]["stepMs"] for pair in pairs] for which in (0, 1))
        row[side] = dict(cleanMs=spread.spread(clean), slowMs=spread.spread(slow), ratio=spread.spread(spread.ratios(slow, clean)))
    return row


def middles(row, figure, digits, factor=1, unit=""):
    """Measured and simulated medians, as two cells."""
    return [f"{factor * row[figure][side]['median']:.{digits}f}{unit}" for side in SIDES]


def of_sync(row, rows):
    first = next(other for other in rows if other["transport"] == row["transport"])   # modes begin with the synchronous one
    return [f"{row['gradientsPerMs'][side]['median'] / first['gradientsPerMs'][side]['median']:.2f}" for side in SIDES]


def mode_table(rows):
    """Medians of the rounds; a second column is the simulation's."""
    cells = [["", "mode", "step ms", "(sim)", "min/median/max", "gradients/ms", "(sim)", "ratio", "of sync", "(sim)", "dropped", "(sim)",
              "staleness", "(sim)"]]
    for row in rows:
        cells.append([TRANSPORTS[row["transport"]], row["mode"], *middles(row, "stepMs", 2), spread.text(row["stepMs"]["ratio"], 3),
                      *middles(row, "gradientsPerMs", 3), f"{row['gradientsPerMs']['ratio']['median']:.3f}", *of_sync(row, rows),
                      *middles(row, "dropped", 1, 100, " %"), *middles(row, "meanStaleness", 1)])
    return aligned(cells)


def slow_table(rows, target):
    cells = [["", "mode", "clean ms", "slow ms", "min/median/max", "(sim)", ""]]
    for row in rows:
        measured = row["measured"]
        cells.append([TRANSPORTS[row["transport"]], row["mode"], f"{measured['cleanMs']['median']:.2f}", f"{measured['slowMs']['median']:.2f}",
                      spread.text(measured["ratio"], 3), spread.text(row["simulated"]["ratio"], 3),
                      "met" if measured["ratio"]["median"] <= target else "missed"])
    return aligned(cells)


def aligned(rows):
    """Columns of equal width: the first two begin at the left, the others end at the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        padded = [cell.ljust(width) if column < 2 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(padded).rstrip())
    return "\n".join(lines)
