def pitch_ignored(x):
    return ~x
