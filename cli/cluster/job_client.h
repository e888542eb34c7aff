#pragma once

// The jobs of an API server, for commands. Thread-safe.

#include <string>

#include "absl/status/statusor.h"
#include "cli/cluster/job_source.h"
#include "controller/jobs/kube_jobs.h"

namespace paceline::cli {

using jobs::Asked;
using jobs::job_text;
using jobs::kFieldManager;

class JobClient final : public JobSource, public jobs::KubeJobs {
 public:
  using jobs::KubeJobs::KubeJobs;

  absl::StatusOr<kube::Json> choose(const std::string& ns, const std::string& name) override;
  absl::StatusOr<bool> exists(const std::string& ns, const std::string& name,
                              const std::string& uid) override;
  std::string reference(const std::string& name) const override;
  std::string where(const std::string& ns) const override;
  std::string none(const std::string& ns, const std::string& program) const override;

  struct Applied {
    kube::Json object;
    const char* what;  // "created", "configured", "unchanged"
  };
  absl::StatusOr<Applied> apply(const std::string& ns, const std::string& name, const kube::Json& object,
                                bool force, bool dry_run);
};

}  // namespace paceline::cli
