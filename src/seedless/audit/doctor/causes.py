"""The causes that `seedless doctor` can name: one list, which docs/reference/doctor.md describes.

A remedy is a sentence in which {line} is the line to change, {op} the operation, {generator} the
generator that was drawn from, {call} the call that seeds it, {name} a file, flag or variable,
{stable} what does not depend on hashes, and {advice} what is known about the operation.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """Why two runs differ.

    Attributes:
        title: the cause, as the end of a sentence that begins "because".
        remedy: what to do about it.
    """

    title: str
    remedy: str


CAUSES = {
    "unseeded-weights": Cause(
        "the initial weights are drawn from a generator that nobody seeded",
        "call {call} before {line}, where the weights are drawn{earlier}",
    ),
    "unseeded-shuffle": Cause(
        "the order of the data is drawn from a generator that nobody seeded",
        "call {call} before {line}, or give the DataLoader a seeded generator=",
    ),
    "time-seed": Cause(
        "a generator is seeded with a value that changes from run to run",
        "give the call at {line} a constant seed",
    ),
    "worker-draws": Cause(
        "a worker of the DataLoader draws from a generator that is seeded differently in each run",
        "seed {generator} in each worker: a worker_init_fn for the draws at {line}",
    ),
    "augmentation-draws": Cause(
        "the data are changed at random, from a generator that nobody seeded",
        "call {call} before {line}, where the data are changed",
    ),
    "dropout-draws": Cause(
        "dropout draws its masks from a generator that is not in the same state",
        "call {call} before training; the masks are drawn at {line}",
    ),
    "unseeded-draws": Cause(
        "a value is drawn from a generator that nobody seeded",
        "call {call} before {line}",
    ),
    "hash-order": Cause(
        "the order of a set, or a value of hash(), changes from process to process",
        "use {stable} at {line}, or start Python with PYTHONHASHSEED=0",
    ),
    "address-order": Cause(
        "a set gives its elements in the order of their addresses, which changes from run to run",
        "use a list in place of the set at {line}",
    ),
    "listing-order": Cause(
        "the names in a folder were not given in the same order",
        "use sorted(...) around the listing at {line}",
    ),
    "nondeterministic-op": Cause(
        "{op} does not give the same bits each time it is run",
        "{advice}",
    ),
    "cudnn-autotune": Cause(
        "cuDNN times its algorithms and does not choose the same one in each run",
        "set torch.backends.cudnn.benchmark = False and torch.backends.cudnn.deterministic = True",
    ),
    "tf32": Cause(
        "one of the runs rounds float32 products to TF32 and the other does not",
        "set {name} to the same value in both runs",
    ),
    "autocast": Cause(
        "one of the runs uses autocast, or another dtype in it, and the other does not",
        "use the same autocast in both runs: {name} differs",
    ),
    "dtype": Cause(
        "the runs compute in different dtypes",
        "use one dtype in both runs: {name} differs",
    ),
    "threads": Cause(
        "torch splits its sums among another number of threads",
        "set the same number in both runs: OMP_NUM_THREADS, or torch.set_num_threads(...)",
    ),
    "uninitialized-memory": Cause(
        "memory is used that nothing was written to",
        "write to the tensor made at {line} first: torch.zeros(...) in place of torch.empty(...)",
    ),
    "python-value": Cause(
        "a number that Python computes, and not torch, is not the same in each run",
        "find out where the value at {line} comes from, and fix it: a clock, a process number, an "
        "address, an order",
    ),
    "clock": Cause(
        "a value that is read from a clock decides what is computed",
        "let a constant or a count of steps decide in place of the clock that {line} reads",
    ),
    "entropy": Cause(
        "a value comes from the entropy of the operating system, which no seed fixes",
        "take the value at {line} from a seeded generator, as random.Random(0)",
    ),
    "completion-order": Cause(
        "results of threads or processes are used in the order in which they end",
        "use the results of {call} at {line} in the order of their tasks: map, imap, or a sort",
    ),
    "thread-order": Cause(
        "threads of the script change a tensor, in an order that is not the same in each run",
        "let each thread that {line} starts return its result, and combine the results in a fixed "
        "order",
    ),
    "atomics": Cause(
        "a kernel of its own, custom or compiled, gives other bits for the same inputs",
        "replace atomic additions in the kernel that {line} calls by sums in a fixed order",
    ),
    "compiled": Cause(
        "one of the runs is compiled and the other is not",
        "compile in both runs or in none of them",
    ),
    "data-changed": Cause(
        "a file that the script reads changed between the runs",
        "keep {name} as it is between the runs; it is read at {line}",
    ),
    "leftover-file": Cause(
        "the second run reads a file that the first one wrote",
        "remove {name} before each run, or write it to a new folder: it is read at {line}",
    ),
    "source-changed": Cause(
        "the source of the script changed between the runs",
        "run the same source twice: {name} differs",
    ),
    "resume-not-loaded": Cause(
        "the resumed run does not begin with the weights of the run that was ended",
        "load the checkpoint before the first step at {line}",
    ),
    "resume-generator": Cause(
        "the checkpoint leaves out the states of the generators",
        "save and restore the state of {generator}: {call}",
    ),
    "resume-scheduler": Cause(
        "the checkpoint leaves out the learning rate's scheduler",
        "save scheduler.state_dict() and load it before the first step at {line}",
    ),
    "resume-scaler": Cause(
        "the checkpoint leaves out the gradient scaler",
        "save scaler.state_dict() and load it before the first step at {line}",
    ),
    "resume-sampler": Cause(
        "the resumed run does not continue in the order of the data where the other stopped",
        "save the position in the epoch and the sampler's state, and continue there",
    ),
    "resume-optimizer": Cause(
        "the checkpoint leaves out the state of the optimizer",
        "save optimizer.state_dict() and load it before the first step at {line}",
    ),
    "rank-differs": Cause(
        "the ranks of one run do not hold the same weights",
        "give every rank the same start: wrap the model in DistributedDataParallel, or broadcast "
        "its weights before the first step at {line}",
    ),
    "settings": Cause(
        "the runs do not have the same settings",
        "use the same value of {name} in both runs",
    ),
    "another-program": Cause(
        "the runs are not runs of the same program",
        "run the same command with the same Python and the same torch: {name} differs",
    ),
    "unknown": Cause(
        "the cause could not be told",
        "look at the evidence below, and at the line {line}",
    ),
}
