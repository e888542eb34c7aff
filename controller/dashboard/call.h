#pragma once

// A request of somebody who may make it, on its way to what answers it.

#include <functional>
#include <memory>
#include <string>

#include "controller/cluster/kube/json.h"
#include "controller/dashboard/gate.h"
#include "controller/history/record.h"
#include "controller/web/http_message.h"

namespace paceline::dashboard {

struct Call {
  web::HttpRequest request;
  web::HttpRequest::Fields path;                          // parameters of its route
  std::function<void(web::HttpAnswer)> answer;            // once, by any thread
  std::string key;                                        // of the job, where the path names one
  std::shared_ptr<const kube::Json> object;               // likewise
  std::shared_ptr<const history::Record> past = nullptr;  // of a job that is deleted; null: it is there
  Viewer viewer = {};                                     // who asks
  std::shared_ptr<Sight> sight = nullptr;                 // what he may see; null: all
};

// The lane of what is done for a call (workers.h): its viewer's, where others than he may look.
inline std::string lane_of(const Call& call) {
  return call.viewer.token.empty() ? "" : call.viewer.user;
}

// The namespaces that the viewer sees; null: all.
inline Namespaces namespaces_of(const Call& call) {
  return call.sight == nullptr ? nullptr : call.sight->look({}).namespaces;
}

}  // namespace paceline::dashboard
