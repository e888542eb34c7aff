#pragma once

// A pod's log from an API server. Following, it is read again where the connection broke off, each line once
// (log_lines.h), until the pod has ended or is gone.

#include <stop_token>

#include "absl/status/status.h"
#include "controller/cluster/kube/pause.h"
#include "controller/jobs/kube_jobs.h"

namespace paceline::jobs {

// JobSource::read_log() of a cluster; errors are in plain words (api_error_text.h).
absl::Status read_pod_log(KubeJobs& jobs, const kube::Pause& pause, const kube::SlimPod& pod,
                          const LogRequest& request, const LogSink& sink, std::stop_token stop);

}  // namespace paceline::jobs
