#include "cli/dashboard/cluster_dashboard.h"

#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/describe_text.h"
#include "controller/cluster/kube/informer.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/job_feed.h"
#include "controller/dashboard/job_samples.h"
#include "controller/dashboard/kube_place.h"
#include "controller/dashboard/server.h"

namespace paceline::cli {

namespace {

constexpr Duration kFirstList = std::chrono::seconds(2);  // of the start
// It tells anybody their own name, whatever they prove it by: a token, a certificate, a plug-in.
constexpr kube::Resource kSelfReviews{"authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview"};

// Likewise, what they may.
constexpr kube::Resource kSelfAccessReviews{"authorization.k8s.io/v1", "selfsubjectaccessreviews",
                                            "SelfSubjectAccessReview"};

// A review that fails allows it: the API server decides when they act.
bool may(JobClient& jobs, const char* verb, const std::string& ns, const std::string& name) {
  const auto review = jobs.api().create(kSelfAccessReviews, "",
                                        {{"apiVersion", kSelfAccessReviews.api_version},
                                         {"kind", kSelfAccessReviews.kind},
                                         {"spec",
                                          {{"resourceAttributes",
                                            {{"group", "paceline.dev"},
                                             {"resource", kube::kTrainingJobs.plural},
                                             {"verb", verb},
                                             {"namespace", ns},
                                             {"name", name}}}}}});
  return !review.ok() || kube::flag_at(*review, {"status", "allowed"});
}

// API servers before Kubernetes 1.28 don't tell.
std::string own_name(JobClient& jobs) {
  const auto review = jobs.api().create(
      kSelfReviews, "", {{"apiVersion", kSelfReviews.api_version}, {"kind", kSelfReviews.kind}});
  const std::string name =
      review.ok() ? kube::text_at(*review, {"status", "userInfo", "username"}) : std::string();
  return name.empty() ? "the kubeconfig's user" : name;
}

// The words of `paceline describe`.
dashboard::Board::Advice advice(const std::string& program) {
  dashboard::Board::Advice advice;
  advice.hints = [program](const kube::Json& object) {
    Described described{.job = read_job(object), .program = program};
    api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
    described.spec_errors = kube::errors_of(parsed.diagnostics);
    described.spec = std::move(parsed.job);
    described.where = str_cat(" -n ", described.job.ns);
    return hints_for(described);
  };
  return advice;
}

class ClusterDashboardImpl final : public ClusterDashboard {
 public:
  ClusterDashboardImpl(JobClient& jobs, const Options& options, const Clock& clock, const Logger& log)
      : jobs_(jobs),
        clock_(clock),
        scope_{kube::kTrainingJobs, options.ns, ""},
        board_(clock, advice(options.program)),
        samples_(clock),
        feed_(board_, samples_, /*history=*/nullptr),
        place_(jobs.api(), samples_, clock, log,
               {.cluster = options.cluster, .ns = options.ns, .instance = options.program}),
        informer_(jobs.api(), scope_, feed_, clock, log, /*seed=*/1, [](const std::string&) {}) {}

  absl::Status serve(int port) {
    // One of them is enough to hear that they may not be listed.
    const absl::Status listed = jobs_.api().list(scope_, 1, "", jobs_.stop()).status();
    if (!listed.ok()) return jobs_.plain(listed, {.what = "list the jobs", .verb = "list", .ns = scope_.ns});
    informer_.start();
    (void)informer_.wait_synced(kFirstList);  // a program that asks at once gets the list
    PL_ASSIGN_OR_RETURN(
        server_,
        dashboard::Server::start(
            board_, place_,
            {.version = PACELINE_VERSION,
             .user = own_name(jobs_),
             .address = str_cat("127.0.0.1:", port),
             .rights =
                 [this](const std::string& ns, const std::string& name) {
                   return dashboard::Rights{may(jobs_, "update", ns, name), may(jobs_, "delete", ns, name)};
                 }},
            clock_));
    return absl::OkStatus();
  }

  std::string new_address() override { return server_->new_address(); }

 private:
  JobClient& jobs_;
  const Clock& clock_;
  const kube::Scope scope_;
  dashboard::Board board_;
  dashboard::JobSamples samples_;
  dashboard::JobFeed feed_;
  dashboard::KubePlace place_;
  kube::Informer informer_;
  std::unique_ptr<dashboard::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterDashboard>> ClusterDashboard::start(JobClient& jobs, Options options,
                                                                          const Clock& clock,
                                                                          const Logger& log) {
  auto dashboard = std::make_unique<ClusterDashboardImpl>(jobs, options, clock, log);
  PL_RETURN_IF_ERROR(dashboard->serve(options.port));
  return dashboard;
}

}  // namespace paceline::cli
