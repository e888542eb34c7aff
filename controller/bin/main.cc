// paceline-controller: reads flags and configuration, finds the API server, and runs the controller until a
// signal, or until the lease is lost.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "base/boot_clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/program.h"
#include "base/random.h"
#include "base/sanitize.h"
#include "base/status.h"
#include "base/whole_number.h"
#include "controller/bin/ask_ready.h"
#include "controller/bin/config.h"
#include "controller/bin/controller.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/curl_transport.h"
#include "controller/cluster/kube/pause.h"

namespace {

using namespace paceline;
using controller::Config;

constexpr int kExitEnded = 0, kExitFailed = 1, kExitConfiguration = 2, kExitLeaseLost = 3, kExitHurried = 4;
constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::size_t kDescriptors = 20'000;  // a stream for each member, and what else is open

constexpr const char* kFooter = R"(Flags win over the configuration file. docs/kubernetes.md has every field.

Exit codes:
  0 ended in order after SIGTERM or SIGINT
  1 it could not start: no credentials, or an address that can't be listened on; or --ask-ready got no yes
  2 bad flags or configuration file
  3 the lease is lost: another replica leads now; start it again
  4 ended before all work under way was finished: 10 s had passed, or a second signal came)";

struct Flags {
  std::string config, kubeconfig, ns, log_format, log_level, health_address, dashboard_address,
      coordinator_address, ask_ready;
  std::optional<bool> leader_elect;
  std::optional<int> workers;
};

int fail(int code, const std::string& message) {
  std::fprintf(stderr, "paceline-controller: %s\n", sanitize(message).c_str());
  return code;
}

void declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", "paceline-controller " PACELINE_VERSION);
  app.footer(kFooter);
  app.add_option("--config", flags.config, "a ControllerConfiguration, YAML or JSON");
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "this file instead of $KUBECONFIG, ~/.kube/config, or the pod's service account");
  app.add_option("--namespace", flags.ns, "only the jobs of this namespace");
  app.add_option("--leader-elect", flags.leader_elect,
                 "take part in an election (true), or act at once (false)");
  app.add_option("--workers", flags.workers, "jobs that are worked on at the same time")
      ->check([](const std::string& text) { return whole_number_fault(text, 1, 256); });
  app.add_option("--log-format", flags.log_format, "json or text")->check(CLI::IsMember({"json", "text"}));
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--health-address", flags.health_address, "IP:PORT of /healthz, /readyz and /metrics");
  app.add_option("--dashboard-address", flags.dashboard_address,
                 "IP:PORT of the dashboard, for people with a bearer token; none where it is not given");
  app.add_option("--coordinator-address", flags.coordinator_address,
                 "HOST:PORT at which pods reach this controller's coordinators");
  app.add_option("--ask-ready", flags.ask_ready,
                 "does nothing but ask the controller at this http:// or https://HOST:PORT, for a minute, if "
                 "it is ready");
  for (const char* name : {"--config", "--kubeconfig"})
    app.get_option(name)->check([](const std::string& text) { return text.empty() ? "it is empty" : ""; });
}

// False: `code` says how the process ends.
bool read_config(const Flags& flags, Config& config, int& code) {
  if (!flags.config.empty()) {
    const absl::StatusOr<std::string> text = read_file(flags.config, kMaxConfigBytes);
    if (!text.ok()) {
      code = fail(kExitConfiguration, std::string(text.status().message()));
      return false;
    }
    const controller::ParsedConfig parsed = controller::parse_config(*text, flags.config);
    if (!parsed.config) {
      std::fputs(sanitize(api::render_diagnostics(parsed.diagnostics, *text)).c_str(), stderr);
      code = kExitConfiguration;
      return false;
    }
    config = *parsed.config;
  }
  if (!flags.ns.empty()) config.ns = flags.ns;
  if (flags.leader_elect) config.leader_election.enabled = *flags.leader_elect;
  if (flags.workers) config.workers = *flags.workers;
  if (!flags.log_format.empty())
    config.log_format = flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (flags.log_level == controller::log_level_name(level)) config.log_level = level;
  }
  if (!flags.health_address.empty()) config.health_address = flags.health_address;
  if (!flags.dashboard_address.empty()) config.dashboard_address = flags.dashboard_address;
  if (!flags.coordinator_address.empty()) config.coordinator_address = flags.coordinator_address;
  return true;
}

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The pod's name, so that people know whom, and something that no earlier process had.
std::string identity() {
  char host[256] = "controller";
  (void)::gethostname(host, sizeof(host) - 1);
  constexpr std::size_t kUniqueBytes = 8;
  return str_cat(variable("POD_NAME").value_or(host), "_", hex(random_bytes(kUniqueBytes)));
}

int run_ask_ready(const std::string& url) {
  const SystemClock clock;
  // No certificate is verified, as kubelets do it: whoever answers is asked for nothing but a yes.
  const auto transport = kube::open_curl_transport({.server = url, .insecure_skip_tls_verify = true},
                                                   kube::fixed_credentials({}), Logger::none());
  const absl::Status ready = transport.ok() ? controller::ask_ready(**transport, clock, kube::real_pause)
                                            : absl::Status(transport.status());
  if (!ready.ok()) return fail(kExitFailed, str_cat(url, ": ", std::string(ready.message())));
  std::printf("%s: the controller is ready\n", url.c_str());
  return kExitEnded;
}

int run(const Config& config, const Flags& flags, const sigset_t& signals) {
  const SystemClock clock;
  const BootClock election_clock;
  const Logger log = Logger::to_stderr("paceline-controller", config.log_level, config.log_format);
  if (const absl::Status room = reserve_descriptors(kDescriptors); !room.ok()) {
    log.warning(str_cat(std::string(room.message()), "; so many members less can attach"),
                {{"reason", "Start"}});
  }
  const auto access =
      kube::find_access({.kubeconfig = flags.kubeconfig, .context = "", .variable = variable}, clock, log);
  if (!access.ok()) return fail(kExitFailed, std::string(access.status().message()));
  const auto transport = kube::open_curl_transport(access->endpoint, access->credentials, log);
  if (!transport.ok()) return fail(kExitFailed, std::string(transport.status().message()));
  // Its warnings are the other's.
  const auto lease_transport =
      kube::open_curl_transport(access->endpoint, access->credentials, Logger::none());
  if (!lease_transport.ok()) return fail(kExitFailed, std::string(lease_transport.status().message()));
  log.info(str_cat("the API server is ", access->endpoint.server, ", as ", access->source),
           {{"reason", "Start"}});

  auto traces = traces::Exporter::from_environment(variable, clock, log);
  if (!traces.ok())
    log.warning(str_cat("there are no traces: ", std::string(traces.status().message())),
                {{"reason", "Start"}});

  std::uint64_t seed = 0;
  fill_random(std::as_writable_bytes(std::span(&seed, 1)));
  auto started = controller::Controller::start(
      {.config = config,
       .own_ns = access->ns.empty() ? "default" : access->ns,
       .identity = identity(),
       .own_host = variable("POD_IP").value_or(""),
       .seed = seed,
       .lease_transport = lease_transport->get(),
       .election_clock = &election_clock,
       .transport_of =
           [endpoint = access->endpoint](const std::string& token) {
             return kube::open_curl_transport(
                 endpoint, kube::fixed_credentials({.headers = {{"Authorization", "Bearer " + token}}}),
                 Logger::none());
           },
       .traces = traces.ok() ? traces->get() : nullptr,
       .on_lost =
           [&log](const std::string& reason) {
             log.error(str_cat("ends at once: ", reason), {{"reason", "LeaseLost"}});
             std::_Exit(kExitLeaseLost);
           }},
      **transport, clock, log);
  if (!started.ok()) return fail(kExitFailed, std::string(started.status().message()));
  log.info(str_cat("health and metrics are on port ", (*started)->health_port()), {{"reason", "Start"}});

  if (const int port = (*started)->dashboard_port(); port != 0)
    log.info(str_cat("the dashboard is on port ", port), {{"reason", "Start"}});

  int signal = 0;
  (void)::sigwait(&signals, &signal);
  log.info("asked to end: no new work is taken", {{"reason", "Stop"}});
  std::thread([signals, log] {
    int again = 0;
    (void)::sigwait(&signals, &again);
    log.warning("asked to end a second time: at once", {{"reason", "Stop"}});
    std::_Exit(kExitHurried);
  }).detach();
  const absl::Status ended = (*started)->shut_down();
  if (ended.code() == absl::StatusCode::kDeadlineExceeded) {
    log.warning(std::string(ended.message()), {{"reason", "Stop"}});
    std::_Exit(kExitHurried);
  }
  if (!ended.ok()) log.warning(std::string(ended.message()), {{"reason", "Stop"}});
  log.info("ended in order", {{"reason", "Stop"}});
  started->reset();
  traces = nullptr;
  std::_Exit(kExitEnded);  // the thread that waits for a second signal has nothing to give back
}

int run_program(int argc, char** argv) {
  CLI::App app("Runs TrainingJobs of a Kubernetes cluster.", "paceline-controller");
  Flags flags;
  declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitEnded : kExitConfiguration;
  }
  if (!flags.ask_ready.empty()) return run_ask_ready(flags.ask_ready);
  Config config;
  int code = kExitFailed;
  if (!read_config(flags, config, code)) return code;
  if (std::string error = controller::config_error(config); !error.empty())
    return fail(kExitConfiguration, error);
  if (!config.history.path.empty() && config.dashboard_address.empty())
    return fail(kExitConfiguration,
                "dashboard.history.path names a file, and there is no dashboard to show what is in it: set "
                "dashboard.address, or --dashboard-address");
  ::signal(SIGPIPE, SIG_IGN);  // whoever reads the log lines may go
  sigset_t signals;            // blocked before any thread is made
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return run(config, flags, signals);
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("paceline-controller", kExitFailed, [&] { return run_program(argc, argv); });
}
