#include "cli/commands/cluster_flags.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <span>
#include <stop_token>

#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/names.h"
#include "cli/commands/run_source.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/curl_transport.h"

namespace paceline::cli {

namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Call call_over(JobSource& jobs, Session& session, std::stop_token stop) {
  return {.jobs = jobs,
          .stop = std::move(stop),
          .program = session.program,
          .clock = session.clock,
          .terminal = session.out_terminal,
          .out = std::cout,
          .err = std::cerr};
}

absl::Status run_on_cluster(Session& session, const ClusterFlags& flags, std::stop_token stop,
                            const std::function<absl::Status(Call&)>& work) {
  const Logger log = Logger::to_stderr(session.program, LogLevel::kWarning);
  const auto found = kube::find_access(
      {.kubeconfig = flags.kubeconfig, .context = flags.context, .variable = variable}, session.clock, log);
  // A command that only a cluster has, of somebody who may mean a run of this machine.
  if (absl::IsNotFound(found.status()) && !is_on_cluster(session, flags)) {
    return absl::NotFoundError(
        str_cat(found.status().message(),
                "; this command is for jobs of a cluster: `paceline describe RUN` tells "
                "what happened to a run of this machine"));
  }
  PL_ASSIGN_OR_RETURN(const kube::KubeAccess access, found);
  PL_ASSIGN_OR_RETURN(const std::unique_ptr<kube::Transport> transport,
                      kube::open_curl_transport(access.endpoint, access.credentials, log));
  std::uint64_t seed = 0;
  fill_random(std::as_writable_bytes(std::span(&seed, 1)));
  kube::ApiClient api(*transport, session.clock, seed, stop);
  JobClient client(api, str_cat(access.endpoint.server, " (", access.source, ")"), stop);
  Call call = call_over(client, session, stop);
  call.client = &client;
  call.ns = !flags.ns.empty() ? flags.ns : access.ns.empty() ? "default" : access.ns;
  call.all_namespaces = flags.all_namespaces;
  std::unique_ptr<DashboardClient> dashboard;
  if (const std::string url =
          flags.dashboard.empty() ? variable("PACELINE_DASHBOARD").value_or("") : flags.dashboard;
      flags.asks_dashboard && !url.empty()) {
    const std::string authority =
        flags.dashboard_ca.empty() ? variable("PACELINE_DASHBOARD_CA").value_or("") : flags.dashboard_ca;
    PL_ASSIGN_OR_RETURN(dashboard, DashboardClient::open(url, authority, *access.credentials, session.clock));
    call.dashboard = dashboard.get();
  }
  const absl::Status status = work(call);
  std::cout.flush();
  return status;
}

}  // namespace

std::shared_ptr<ClusterFlags> add_cluster_flags(CLI::App& command, const Session& session, Where where,
                                                bool with_all) {
  auto flags = std::make_shared<ClusterFlags>();
  if (!session.kubectl)
    command
        .add_flag("--cluster", flags->cluster,
                  where == Where::kBoth ? "The cluster of the kubeconfig's current context, not this machine"
                                        : "The cluster of the kubeconfig's current context (the default)")
        ->group(kClusterGroup);
  add_value(command, "--context", flags->context, "NAME", "This context of the kubeconfig")
      ->group(kClusterGroup);
  add_value(command, "-n,--namespace", flags->ns, "NAME", "This namespace (default: the context's)")
      ->group(kClusterGroup);
  if (with_all)
    command.add_flag("-A,--all-namespaces", flags->all_namespaces, "All namespaces")->group(kClusterGroup);
  add_value(command, "--kubeconfig", flags->kubeconfig, "FILE",
            "This file (default: $KUBECONFIG, else ~/.kube/config)")
      ->group(kClusterGroup);
  return flags;
}

void add_dashboard_flag(CLI::App& command, ClusterFlags& flags) {
  add_value(command, "--dashboard", flags.dashboard, "URL",
            "The controller's dashboard, which has the history (default: $PACELINE_DASHBOARD)")
      ->group(kClusterGroup);
  add_value(command, "--dashboard-ca", flags.dashboard_ca, "FILE",
            "The authority of its certificate, in PEM (default: $PACELINE_DASHBOARD_CA, else the system's)")
      ->group(kClusterGroup);
}

bool is_on_cluster(const Session& session, const ClusterFlags& flags) {
  return session.kubectl || flags.cluster || flags.all_namespaces || !flags.context.empty() ||
         !flags.kubeconfig.empty() || !flags.ns.empty() || !flags.dashboard.empty() ||
         !flags.dashboard_ca.empty();
}

bool take_name(Session& session, const ClusterFlags& flags, const std::string& text, std::string& name) {
  if (is_on_cluster(session, flags)) return take_job_name(session, text, name);
  name = text;
  return true;
}

bool take_job_name(Session& session, const std::string& text, std::string& name) {
  if (text.empty()) return true;
  auto job = job_name_of(text);
  if (!job.ok()) {
    session.fail(job.status());
    return false;
  }
  name = *std::move(job);
  return true;
}

namespace {

absl::Status run_here(Session& session, std::stop_token stop,
                      const std::function<absl::Status(Call&)>& work) {
  PL_ASSIGN_OR_RETURN(RunStore store, session.store());
  RunSource runs(std::move(store), session.clock, std::cout);
  Call call = call_over(runs, session, std::move(stop));
  const absl::Status status = work(call);
  for (const absl::Status& why : runs.left_out()) session.fail(why);
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(str_cat(status.message(), session.cluster_hint()));
}

void carry_out(Session& session, Mode mode, const std::function<absl::Status(std::stop_token)>& work) {
  std::unique_ptr<Interrupt> interrupt;  // before any thread is made
  if (mode == Mode::kFollow) {
    auto opened = Interrupt::open(kExitInterrupted);
    if (!opened.ok()) return session.fail(opened.status());
    interrupt = *std::move(opened);
  }
  const absl::Status status = work(interrupt ? interrupt->token() : std::stop_token());
  if (absl::IsCancelled(status)) {
    session.exit_code = kExitInterrupted;  // who pressed ctrl-C knows
  } else if (!status.ok()) {
    session.fail(status);
  }
}

}  // namespace

void on_cluster(Session& session, const ClusterFlags& flags, Mode mode,
                const std::function<absl::Status(Call&)>& work) {
  carry_out(session, mode, [&](std::stop_token stop) { return run_on_cluster(session, flags, stop, work); });
}

void on_jobs(Session& session, const ClusterFlags& flags, Mode mode,
             const std::function<absl::Status(Call&)>& work) {
  if (is_on_cluster(session, flags)) return on_cluster(session, flags, mode, work);
  carry_out(session, mode, [&](std::stop_token stop) { return run_here(session, stop, work); });
}

}  // namespace paceline::cli
