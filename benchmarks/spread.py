"""Minimum, median and maximum, and how two series that were taken in turns compare. Pure."""

import statistics


def spread(values):
    """The three of one series, which is not empty."""
    return dict(min=min(values), median=statistics.median(values), max=max(values))


def ratios(values, others):
    """Each value over the one that was taken beside it, so that what slows down both takes no part. As many of both; none of the others is 0."""
    if len(values) != len(others):
        raise ValueError(f"{len(values)} values beside {len(others)}")
    return [value / other for value, other in zip(values, others)]


def text(values, digits=2):
    """Of a spread: 0.98/1.01/1.05"""
    return "/".join(f"{values[key]:.{digits}f}" for key in ("min", "median", "max"))
