"""Which samples a step takes, as runtime/data/ledger.cc says it: so that a peer trains on the same data in the same order. Pure."""

WORD = (1 << 64) - 1
EPOCH_STREAM = 0x6C65646765720001
ROUNDS = 6


def mix64(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & WORD
    return value ^ (value >> 31)


def sample_at(seed, samples, position):
    """The sample at a position of the concatenated epochs, each in an order of its own."""
    epoch, value = divmod(position, samples)
    key = mix64((mix64(seed ^ EPOCH_STREAM) + epoch) & WORD)
    half = max(1, ((samples - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = value >> half, value & mask
        for turn in range(ROUNDS):
            left, right = right, left ^ (mix64((key + right + (turn << 56)) & WORD) & mask)
        value = (left << half) | right
        if value < samples:
            return value


def samples_of(seed, samples, batch, step):
    """Those of the whole global batch of a step, which count from 0."""
    return [sample_at(seed, samples, step * batch + i) for i in range(batch)]
