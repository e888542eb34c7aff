#include "runtime/bin/run_member.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/process_end.h"
#include "base/processors.h"
#include "base/program.h"
#include "base/status.h"
#include "runtime/bin/device_evidence.h"
#include "runtime/bin/open_device.h"
#include "runtime/bin/stop_signals.h"
#include "runtime/collective/fabric.h"
#include "runtime/member/environment.h"
#include "runtime/member/membership.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/server.h"
#include "runtime/trainer/evaluator_member.h"
#include "runtime/trainer/open_workload.h"
#include "runtime/trainer/server_member.h"
#include "runtime/trainer/trainer.h"

namespace paceline {

namespace {

using trainer::Ending;

constexpr std::chrono::seconds kEndLimit(30);  // of what was attached, or could not be
constexpr std::chrono::seconds kAttachLimit =
    std::chrono::seconds(60);  // the coordinator may still be starting

constexpr char kHelp[] =
    "A member of a Paceline job: it attaches to the job's coordinator and does what its role is: to train, "
    "to\n"
    "serve parameters (ps), or to evaluate checkpoints (evaluator).\n"
    "\n"
    "Members are started by `paceline run` or by the operator, with PACELINE_COORDINATOR, PACELINE_JOB,\n"
    "PACELINE_ROLE, PACELINE_INDEX, PACELINE_POD, PACELINE_POD_UID and PACELINE_TOKEN in their environment;\n"
    "PACELINE_DEVICE, PACELINE_CUDA_GRAPHS, PACELINE_THREADS and PACELINE_LOG_LEVEL are optional\n"
    "(docs/protocol.md).\n"
    "\n"
    "`paceline-worker --steps [COMMAND [ARGUMENT]...]` is for jobs without spec.training: it becomes the "
    "command,\n"
    "and another process tells of the steps that the command sends to PACELINE_STEPS; without a command it\n"
    "only does the latter (docs/stragglers.md).\n"
    "\n"
    "Exit codes: 0 finished, 1 training failed, 2 bad configuration, 3 evicted, stopped, or no "
    "coordinator,\n"
    "134 the GPU, or a library of NVIDIA's, hangs.\n";

// An exit code where the arguments say all.
int answer_arguments(int argc, char** argv) {
  if (argc <= 1) return -1;
  const std::string_view argument = argv[1];
  if (argc == 2 && (argument == "--help" || argument == "-h")) {
    std::fputs(kHelp, stdout);
    return kExitFinished;
  }
  if (argc == 2 && argument == "--version") {
    std::fputs("paceline " PACELINE_VERSION "\n", stdout);
    return kExitFinished;
  }
  std::fprintf(stderr, "unknown argument '%s'; a member takes none but --help and --version\n", argv[1]);
  return kExitConfiguration;
}

// Whether this program was built with the Paceline that starts it; says so where it was not.
bool built_with(const std::map<std::string, std::string>& variables, const char* program) {
  const auto version = variables.find("PACELINE_VERSION");
  if (version == variables.end() || version->second == PACELINE_VERSION) return true;
  std::fprintf(
      stderr,
      "%s is built with Paceline " PACELINE_VERSION
      ", the command that starts it is %s: they must be of one version; build this program anew with the "
      "Paceline that runs it\n",
      program, version->second.c_str());
  return false;
}

int exit_code(const trainer::Outcome& outcome) {
  switch (outcome.ending) {
    case Ending::kFinished:
      return kExitFinished;
    case Ending::kFailed:
      return outcome.configuration ? kExitConfiguration : kExitFailed;
    case Ending::kNone:
    case Ending::kStopped:
    case Ending::kEnded:
      return kExitEnded;
  }
  return kExitFailed;
}

// No coordinator that welcomes it: nobody can be told.
int give_up(const Logger& logger, const absl::Status& status) {
  logger.error(std::string(status.message()));
  return absl::IsInvalidArgument(status) ? kExitConfiguration : kExitEnded;
}

// What a member of each role does once it is attached.
trainer::Outcome take_part(const member::Environment& environment, member::Membership& membership,
                           collective::Fabric& fabric, const Clock& clock, const Logger& logger,
                           trainer::Registry registry, trainer::StopRequest& stop) {
  if (environment.role == Role::kServer) {
    return trainer::ServerMember({membership, fabric, clock, logger, stop, pserver::Server::connect}).run();
  }
  const int threads = environment.threads > 0 ? environment.threads : usable_processors();
  DeviceEvidence evidence(membership.progress(), logger);
  trainer::OpenWorkload workload = [&](const v1::TrainingSpec& spec) -> absl::StatusOr<trainer::Workload> {
    PL_ASSIGN_OR_RETURN(OpenedDevice opened, open_device(environment, threads, logger));
    evidence.watch(opened);
    const trainer::Host host{threads, environment.role != Role::kEvaluator, environment.host_free_mib,
                             environment.host_members};
    return trainer::make_open_workload(registry, std::move(opened.compute), host)(spec);
  };
  if (environment.role == Role::kEvaluator) {
    return trainer::EvaluatorMember({membership, clock, logger, stop, std::move(workload)}).run();
  }
  return trainer::Trainer(
             {membership, fabric, clock, logger, stop, std::move(workload), pserver::Client::connect})
      .run();
}

int attach_and_run(const member::Environment& environment, const Logger& logger, trainer::Registry registry,
                   trainer::StopRequest& stop) {
  const SystemClock clock;
  auto fabric = collective::Fabric::create({.tcp_bind = environment.address}, clock);
  if (!fabric.ok()) {
    logger.error(std::string(fabric.status().message()));
    return kExitFailed;
  }
  const collective::Address& address = (*fabric)->address();
  member::Presence presence;
  presence.host_id = address.host_id;
  presence.local_socket = address.local_socket;
  presence.tcp = address.tcp;
  member::MembershipOptions options;
  options.logger = logger;
  end_within(kAttachLimit + kEndLimit, kExitEnded);  // without its threads gRPC waits for good
  auto membership = member::Membership::attach(environment, presence, options, clock,
                                               Deadline::after(clock.now(), kAttachLimit));
  end_when_ready();
  const int code = membership.ok() ? exit_code(take_part(environment, **membership, **fabric, clock, logger,
                                                         std::move(registry), stop))
                                   : give_up(logger, membership.status());
  end_within(kEndLimit, code);
  return code;
}

}  // namespace

namespace {

int run_answered(int argc, char** argv, trainer::Registry registry) {
  const int answered = answer_arguments(argc, argv);
  if (answered >= 0) return answered;
  const auto variables = member::process_environment();
  if (!built_with(variables, argc > 0 ? argv[0] : "this program")) return kExitConfiguration;
  const auto environment = member::parse_environment(variables);
  if (!environment.ok()) {
    std::fprintf(stderr, "%s\n", std::string(environment.status().message()).c_str());
    return kExitConfiguration;
  }
  const Logger logger = Logger::to_stderr(environment->name(), environment->log_level);
  trainer::StopRequest stop;
  const auto signals = StopSignals::watch(stop, logger);
  if (!signals.ok()) {
    logger.error(std::string(signals.status().message()));
    return kExitFailed;
  }
  return attach_and_run(*environment, logger, std::move(registry), stop);
}

}  // namespace

int run_member(int argc, char** argv, trainer::Registry registry) {
  const int code =
      run_main("member", kExitFailed, [&] { return run_answered(argc, argv, std::move(registry)); });
  end_when_ready();  // what the program does afterwards is its own
  return code;
}

}  // namespace paceline
