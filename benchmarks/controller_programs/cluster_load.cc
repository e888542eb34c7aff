// Objects for an API server, as fast as it takes them.
//
//   cluster_load jobs|pods|children --kubeconfig FILE --namespaces NS,NS,... --jobs N --pods N [--threads N]
//
// `jobs` creates TrainingJobs of N workers each; `pods` creates the very pods that the controller makes of
// them (but for their owner, which is not there), and nothing else: what the API server can do at best;
// `children` creates those pods, and before the first of each job its headless Service: what Kubernetes' own
// controllers do for the Service is in it. Prints one line of JSON. Pods go to nodes with the label type=kwok
// and tolerate everything.

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "base/whole_number.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/curl_transport.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/cluster/kube/resources.h"
#include "controller/plan/pods.h"

namespace paceline::benchmarks {
namespace {

constexpr char kTemplate[] = R"({"spec":{"nodeSelector":{"type":"kwok"},"tolerations":[{"operator":"Exists"}],
  "automountServiceAccountToken":false,
  "containers":[{"name":"trainer","image":"registry.example/trainer:1","command":["python3","train.py"]}]}})";

struct Flags {
  std::string kubeconfig;
  std::vector<std::string> namespaces;  // jobs go to them in turn
  int jobs = 1, pods = 1, threads = 32;
};

const std::string& namespace_of(const Flags& flags, int job) {
  return flags.namespaces[static_cast<std::size_t>(job) % flags.namespaces.size()];
}

kube::Json job_object(const Flags& flags, int number) {
  return {{"apiVersion", "paceline.dev/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", str_cat("job-", number)}, {"namespace", namespace_of(flags, number)}}},
          {"spec",
           {{"replicaSpecs",
             {{"worker", {{"replicas", flags.pods}, {"template", kube::Json::parse(kTemplate)}}}}}}}};
}

enum class What { kJobs, kPods, kChildren };

absl::Status create_service(kube::ApiClient& api, const Flags& flags, int job) {
  const std::string& ns = namespace_of(flags, job);
  return api.create(kube::kServices, ns, kube::service_manifest({ns, str_cat("job-", job), /*uid=*/""}))
      .status();
}

// By the controller's own rules: labels, environment and all.
absl::StatusOr<cluster::PodSpec> worker_pod(const Flags& flags, int job, int index) {
  const kube::Json object = job_object(flags, job);
  api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  if (!parsed.job) return absl::InternalError(kube::errors_of(parsed.diagnostics));
  plan::Observed observed;
  observed.limits.cores = 0;  // as on a cluster
  observed.job = *std::move(parsed.job);
  const std::vector<plan::Slot> slots = plan::desired_slots(observed.job);
  cluster::PodSpec spec = plan::pod_spec(observed, slots.at(static_cast<std::size_t>(index)));
  spec.pod_template = kTemplate;
  return spec;
}

absl::Status create(kube::ApiClient& api, const Flags& flags, What what, int number) {
  if (what == What::kChildren && number % flags.pods == 0) {
    PL_RETURN_IF_ERROR(create_service(api, flags, number / flags.pods));
  }
  if (what == What::kJobs) {
    return api.create(kube::kTrainingJobs, namespace_of(flags, number), job_object(flags, number)).status();
  }
  PL_ASSIGN_OR_RETURN(cluster::PodSpec spec, worker_pod(flags, number / flags.pods, number % flags.pods));
  auto manifest = kube::pod_manifest(spec, "");
  PL_RETURN_IF_ERROR(manifest.status());
  return api.create(kube::kPods, spec.ns, *manifest).status();
}

int run(const Flags& flags, What what) {
  const SystemClock clock;
  const Logger log = Logger::to_stderr("cluster_load", LogLevel::kWarning);
  const auto access = kube::find_access(
      {.kubeconfig = flags.kubeconfig, .context = "", .variable = [](const char*) { return std::nullopt; }},
      clock, log);
  if (!access.ok()) {
    log.error(str_cat(access.status().message()));
    return 1;
  }
  const auto transport = kube::open_curl_transport(access->endpoint, access->credentials, log);
  if (!transport.ok()) {
    log.error(str_cat(transport.status().message()));
    return 1;
  }
  kube::ApiClient api(**transport, clock, 1, {});
  const int count = flags.jobs * (what == What::kJobs ? 1 : flags.pods);
  std::atomic<int> next = 0;
  Guarded<absl::Status> failed;
  const TimePoint begun = clock.now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < flags.threads; ++i) {
      threads.emplace_back([&] {
        for (int number = next++; number < count; number = next++) {
          const absl::Status status = create(api, flags, what, number);
          if (!status.ok()) failed.lock()->Update(status);
        }
      });
    }
  }
  const double seconds = std::chrono::duration<double>(clock.now() - begun).count();
  if (auto status = failed.lock(); !status->ok()) {
    log.error(str_cat(status->message()));
    return 1;
  }
  std::printf("{\"objects\": %d, \"seconds\": %.3f}\n", count, seconds);
  return 0;
}

}  // namespace
}  // namespace paceline::benchmarks

int main(int argc, char** argv) {
  using paceline::benchmarks::What;
  CLI::App app("Creates TrainingJobs, or their pods and Services, as fast as the API server takes them.");
  paceline::benchmarks::Flags flags;
  What what = What::kJobs;
  const std::map<std::string, What> kinds = {
      {"jobs", What::kJobs}, {"pods", What::kPods}, {"children", What::kChildren}};
  app.add_option("what", what)->required()->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--kubeconfig", flags.kubeconfig)->required();
  app.add_option("--namespaces", flags.namespaces)->delimiter(',')->required();
  const auto number_to = [](int most) {
    return [most](const std::string& text) { return paceline::whole_number_fault(text, 1, most); };
  };
  app.add_option("--jobs", flags.jobs)->required()->check(number_to(1'000'000));
  app.add_option("--pods", flags.pods)->required()->check(number_to(1'000'000));
  app.add_option("--threads", flags.threads)->check(number_to(100));
  CLI11_PARSE(app, argc, argv);
  return paceline::benchmarks::run(flags, what);
}
