SPAM = ["win cash now", "claim your free prize", "urgent call this number", "free entry in weekly draw",
        "you won a new phone", "cheap loans apply now", "text stop to end", "limited offer claim cash"]
HAM = ["see you at lunch", "call me when home", "meeting moved to monday", "thanks for the lift",
       "are you coming tonight", "happy birthday to you", "running late sorry", "can you buy milk"]


def load():
    rows = []
    for k in range(6):
        for i, s in enumerate(SPAM):
            rows.append((s + " " + SPAM[(i + k) % 8].split()[0], 1))
        for i, s in enumerate(HAM):
            rows.append((s + " " + HAM[(i + k) % 8].split()[-1], 0))
    return rows
