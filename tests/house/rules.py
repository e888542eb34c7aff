"""The rules of the house as tables: who may include whom, what is pure, how large a file may be.

A folder may include itself, its own sub-folders' headers where it names them, and what its row lists. docs/architecture.md tells why.
"""

# folder -> folders whose headers it may include. The longest matching folder counts.
MAY_INCLUDE = {
    "base": [],
    "proto": ["base"],
    "runtime/transport": ["base"],
    "runtime/collective": ["base", "runtime/transport"],
    "runtime/catch_up": ["base", "runtime/collective", "runtime/transport"],
    "runtime/exchange": ["base", "proto", "runtime/collective", "runtime/tensor"],
    "runtime/cuda": ["base", "runtime/cuda/kernels"],
    "runtime/cuda/kernels": ["base"],
    "runtime/nccl": ["base", "proto", "runtime/collective", "runtime/cuda", "runtime/exchange"],
    "runtime/tensor": ["base", "runtime/tensor/cpu"],
    "runtime/tensor/gpu": ["base", "runtime/tensor", "runtime/cuda"],
    "runtime/tensor/cpu": ["base", "runtime/tensor", "runtime/tensor/cpu/kernels"],
    "runtime/tensor/cpu/kernels": ["base"],
    "runtime/model": ["base", "proto", "runtime/tensor", "runtime/data"],
    "runtime/device": ["base", "runtime/cuda", "runtime/tensor", "runtime/tensor/cpu", "runtime/tensor/gpu"],
    "runtime/generate": ["base", "proto", "runtime/checkpoint", "runtime/model", "runtime/tensor"],
    "runtime/optimizer": ["base", "proto", "runtime/tensor", "runtime/tensor/cpu/kernels"],
    "runtime/optimizer/gpu": ["base", "proto", "runtime/cuda", "runtime/optimizer", "runtime/tensor", "runtime/tensor/cpu/kernels", "runtime/tensor/gpu"],
    "runtime/pserver": ["base", "proto", "runtime/transport", "runtime/collective", "runtime/tensor", "runtime/tensor/cpu/kernels",
                        "runtime/optimizer", "runtime/pserver/policy", "runtime/pserver/sparse"],
    "runtime/data": ["base", "proto"],
    "runtime/checkpoint": ["base", "proto"],
    "runtime/member": ["base", "proto"],
    "runtime/agent": ["base", "proto", "runtime/member"],
    "runtime/pserver/policy": ["base", "proto"],
    "runtime/pserver/sparse": ["base", "runtime/tensor/cpu/kernels"],
    "runtime/trainer": ["base", "proto", "runtime/collective", "runtime/transport", "runtime/catch_up", "runtime/exchange", "runtime/tensor",
                        "runtime/model", "runtime/optimizer", "runtime/data", "runtime/checkpoint", "runtime/member",
                        "runtime/pserver", "runtime/pserver/policy", "runtime/pserver/sparse"],
    "runtime/bin": ["base", "proto", "runtime/agent", "runtime/collective", "runtime/cuda", "runtime/device", "runtime/exchange", "runtime/nccl",
                    "runtime/tensor", "runtime/tensor/gpu", "runtime/model",
                    "runtime/optimizer", "runtime/optimizer/gpu", "runtime/data", "runtime/checkpoint", "runtime/member", "runtime/pserver",
                    "runtime/trainer"],
    "runtime/simulation": ["base", "proto", "runtime/data", "runtime/optimizer", "runtime/pserver/policy", "runtime/tensor/cpu",
                           "runtime/tensor/cpu/kernels", "runtime/trainer"],
    "controller/api": ["base", "proto"],
    "controller/plan": ["base", "controller/api", "controller/cluster", "controller/diagnosis"],
    "controller/queue": ["base"],
    "controller/diagnosis": ["base", "controller/api", "controller/cluster"],
    "controller/stragglers": ["base"],
    "controller/coordinator": ["base", "proto", "controller/api", "controller/diagnosis", "controller/plan", "controller/stragglers"],
    "controller/cluster": ["base"],
    "controller/cluster/local": ["base", "controller/cluster"],
    "controller/cluster/kube": ["base", "controller/api", "controller/cluster", "controller/reconcile"],
    "controller/lease": ["base", "controller/cluster/kube"],
    "controller/reconcile": ["base", "controller/api", "controller/plan", "controller/queue", "controller/cluster",
                             "controller/coordinator", "controller/diagnosis"],
    "controller/jobs": ["base", "controller/cluster/kube"],
    "controller/web": ["base", "controller/queue"],
    "controller/history": ["base"],
    "controller/traces": ["base", "controller/api", "controller/diagnosis", "controller/cluster/kube"],
    "controller/certificates": ["base", "controller/cluster/kube"],
    "controller/dashboard": ["base", "controller/api", "controller/cluster/kube", "controller/history", "controller/jobs",
                             "controller/plan", "controller/reconcile", "controller/web"],
    "controller/bin": ["base", "controller/api", "controller/certificates", "controller/plan", "controller/queue", "controller/cluster",
                       "controller/cluster/kube", "controller/dashboard", "controller/lease", "controller/reconcile", "controller/traces",
                       "controller/web"],
    "cli": ["base", "proto", "controller/api", "controller/plan", "controller/queue", "controller/coordinator", "controller/cluster",
            "controller/cluster/kube", "controller/cluster/local", "controller/dashboard", "controller/diagnosis", "controller/jobs",
            "controller/reconcile", "controller/stragglers", "controller/traces", "runtime/checkpoint",
            "cli/plot", "cli/cluster",
            "cli/generate", "cli/simulate"],
    "cli/cluster": ["base", "controller/api", "controller/cluster", "controller/cluster/kube", "controller/diagnosis", "controller/jobs",
                    "controller/plan", "controller/reconcile", "cli"],
    "cli/generate": ["base", "proto", "controller/api", "runtime/checkpoint", "runtime/device", "runtime/generate", "runtime/tensor", "cli",
                     "cli/cluster"],
    "cli/simulate": ["base", "proto", "controller/api", "runtime/pserver/policy", "runtime/simulation", "cli", "cli/plot"],
    "cli/plot": ["base"],
}

# Files and folders that decide: no clock, no randomness, no I/O, no threads, no logging. `now` and seeds are arguments.
PURE = [
    "controller/api",
    "controller/diagnosis",
    "controller/plan",
    "controller/stragglers",
    "controller/coordinator/core",          # a folder, or files whose name begins so
    "controller/reconcile/job_snapshot", "controller/reconcile/what_if", "controller/bin/job_metrics",
    "controller/cluster/kube/api_error", "controller/cluster/kube/event_series",
    "controller/cluster/kube/job_object",
    "controller/cluster/kube/json", "controller/cluster/kube/manifest", "controller/cluster/kube/pending_notes",
    "controller/cluster/kube/pod", "controller/cluster/kube/reflector_core", "controller/cluster/kube/resources",
    "controller/cluster/kube/status_json", "controller/cluster/kube/times",
    "controller/cluster/kube/watch_decoder",
    "controller/dashboard/access_cache", "controller/dashboard/actions", "controller/dashboard/answers",
    "controller/dashboard/assets", "controller/dashboard/guard", "controller/dashboard/job_row",
    "controller/dashboard/job_series", "controller/dashboard/job_table", "controller/dashboard/next_steps",
    "controller/dashboard/past_job",
    "controller/dashboard/pyramid", "controller/dashboard/series_json", "controller/dashboard/series_record",
    "controller/dashboard/sessions", "controller/dashboard/status_samples", "controller/dashboard/timeline",
    "controller/traces/recovery", "controller/traces/settings", "controller/web/peer", "controller/web/router", "cli/dashboard/metrics_line",
    "controller/lease/election_core", "controller/lease/lease_record",
    "controller/cluster/kube/exec_credential", "controller/cluster/kube/kubeconfig",
    "runtime/collective/schedule.", "runtime/collective/plan", "runtime/collective/tuning",
    "runtime/data/auc", "runtime/data/clicks", "runtime/data/ledger", "runtime/data/zipf",
    "runtime/exchange/buckets",
    "runtime/pserver/policy",
    "runtime/generate/sampler", "runtime/agent/step_feed", "runtime/agent/step_line", "runtime/member/kernel_counters", "runtime/member/trouble",
    "runtime/tensor/graph", "runtime/tensor/join", "runtime/tensor/memory_plan", "runtime/tensor/peak_memory", "runtime/tensor/ready_ranges",
    "runtime/tensor/recompute", "runtime/tensor/schedule",
    "runtime/simulation/delays", "runtime/simulation/modes", "runtime/simulation/stragglers", "runtime/simulation/virtual_cluster",
    "runtime/trainer/memory_budget", "runtime/trainer/member_devices", "runtime/trainer/odd_sizes",
    "runtime/trainer/partial_steps", "runtime/trainer/step_machine", "runtime/trainer/table_specs",
    "runtime/nccl/origin", "runtime/nccl/states",
    "runtime/optimizer/schedule",
    "runtime/pserver/sparse/hot_rows", "runtime/pserver/sparse/initializer", "runtime/pserver/sparse/row_hash",
    "runtime/pserver/sparse/row_optimizer", "runtime/pserver/sparse/table_spec",
    "runtime/pserver/frame", "runtime/pserver/messages", "runtime/pserver/row_cut", "runtime/pserver/row_inbox", "runtime/pserver/row_messages",
    "runtime/pserver/sequencer", "runtime/pserver/shard_map",
    "runtime/checkpoint/safetensors", "runtime/checkpoint/spec_hash",
    "cli/commands/straggler_replay", "cli/run/stop_requests", "cli/state/lost_steps", "cli/generate/prompt", "cli/generate/threads", "cli/plot",
    "cli/simulate/report", "cli/simulate/stragglers_report", "cli/simulate/training_report",
    "cli/view/age", "cli/view/device_text", "cli/view/load_text",
    "cli/cluster/describe_text", "cli/cluster/event_rows", "cli/cluster/job_view", "cli/cluster/names",
    "controller/jobs/api_error_text", "controller/jobs/event_view", "controller/jobs/log_lines", "controller/jobs/yaml",
    "benchmarks/stragglers_programs/worker_tally",
    "base/bytes", "base/cpu_quota", "base/crc32c", "base/device_choice", "base/dtype", "base/fnv1a", "base/hex", "base/ids",
    "base/process_end", "base/rng", "base/telemetry", "base/text", "base/sanitize", "base/whole_number",
]

# What a pure file must not mention, with the word to say instead.
IMPURE = {
    r"#include <(thread|mutex|shared_mutex|condition_variable|future|atomic|semaphore|stop_token)>": "threads belong into the shell",
    r"#include <(fstream|iostream|filesystem|random|ctime)>": "I/O, randomness and time are arguments",
    r"\b(std::)?(printf|fprintf|puts|fputs|fopen)\(": "I/O belongs into the shell",
    r"#include <(unistd|fcntl|sys/[a-z]+|poll|signal|netinet/[a-z]+)\.h>": "system calls belong into the shell",
    r"#include \"base/(log|file|guarded|unique_fd)\.h\"": "logging, files and locks belong into the shell",
    r"#include [<\"](spdlog|grpcpp|absl/synchronization|absl/time/clock)": "logging, gRPC, locks and clocks belong into the shell",
    r"(_clock::now\(|\bClock&|\brand\(|random_device|getenv|gettimeofday|clock_gettime)": "time, randomness and environment are arguments",
}

SOFT_LINES = 400
HARD_LINES = 800
MAX_COLUMNS = 155      # prose in headers and scripts; clang-format keeps code at 110

MAX_PROSE = 160        # a line of a document; sentences begin lines of their own
MAX_ROW = 300          # a row of a table has several cells, and can't be wrapped; longer ones become lists

# How comments, tests' names and expectations are not written; tests/house/known.txt counts those of each file that are left from before.
NO_SUBJECT = r"(What|Whatever|Who|Whoever|Whose|Where|That|Those|Nobody|Nothing|Of|As|So)\b"      # a comment's first word
NO_BEHAVIOUR = r"(Who|What|Whose|Where|Nobody|Those)(?=[A-Z0-9_]|$)"                              # a test's first word
SENTENCE_SPACES = 3                                                                               # in a text that HasSubstr looks for

# Paths of someone's machine, words of unfinished work, and what has a better name here.
BANNED_WORDS = {
    r"/" + r"work/": "a path of somebody's machine",
    r"\bTO" + r"DO\b|\bFIX" + r"ME\b|\bXX" + r"X\b": "finish it, or open an issue",
    r"CLI::" + r"(Range|Number|PositiveNumber|NonNegativeNumber)\b": "the library reads 010 as 8: base/whole_number.h, cli/number_checks.h",
    r"DIS" + r"ABLED_": "a test that is switched off: mend it or delete it",
}

# Code branches on codes and typed fields. What searches in a message reads what was written for people.
SEARCHED_MESSAGES = (r"(\b\w*(message|error|evidence)\w*(\(\))?\.(find|rfind|contains|starts_with|ends_with|find_first_of)\((?!'\\n')"
                     r"|\b(StrContains|StrContainsIgnoreCase|StartsWith|EndsWith|strstr)\([^,;]*(message|error))")
# The words of others, who give no code. One file each turns them into one.
WORDS_OF_OTHERS = {
    "controller/cluster/kube/api_error.cc": "Kubernetes: a quota that is used up is a 403 like any other",
    "runtime/cuda/shared_object.cc": "dlopen: a missing file is told by its words alone",
}

# Overloads of one function for types that no value is converted to.
OVERLOADED = {"visit"}
