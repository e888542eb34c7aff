#pragma once

// A Transport that counts what goes over another one. Thread-safe.

#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/transport.h"
#include "controller/web/controller_metrics.h"

namespace paceline::controller {

class CountingTransport final : public kube::Transport {
 public:
  // Both must outlive it.
  CountingTransport(kube::Transport& transport, web::ControllerMetrics& metrics)
      : transport_(transport), metrics_(metrics) {}

  absl::StatusOr<kube::Response> call(const kube::Request& request) override {
    return count(request, transport_.call(request));
  }
  absl::StatusOr<kube::Response> stream(const kube::Request& request,
                                        const std::function<bool(std::string_view)>& on_bytes,
                                        std::stop_token stop) override {
    return count(request, transport_.stream(request, on_bytes, std::move(stop)));
  }

 private:
  absl::StatusOr<kube::Response> count(const kube::Request& request,
                                       absl::StatusOr<kube::Response> response) {
    metrics_.requested(kube::method_name(request.method), response.ok() ? response->status : 0);
    return response;
  }

  kube::Transport& transport_;
  web::ControllerMetrics& metrics_;
};

}  // namespace paceline::controller
