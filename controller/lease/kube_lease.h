#pragma once

// The lease as an object of the API server. Thread-safe.

#include <string>

#include "controller/cluster/kube/api_client.h"
#include "controller/lease/lease_store.h"

namespace paceline::lease {

kube::Json lease_object(const LeaseRecord& record, const std::string& name, const std::string& version);
// What is missing or of another kind counts as empty, as for client-go.
Seen seen_of(const kube::Json& object);

class KubeLease final : public LeaseStore {
 public:
  // `api` must outlive it.
  KubeLease(kube::ApiClient& api, std::string ns, std::string name)
      : api_(api), ns_(std::move(ns)), name_(std::move(name)) {}
  absl::StatusOr<std::optional<Seen>> read() override;
  absl::StatusOr<Seen> write(const ElectionCore::Write& write) override;

 private:
  kube::ApiClient& api_;
  const std::string ns_, name_;
};

}  // namespace paceline::lease
