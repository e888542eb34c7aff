#pragma once

// A request of somebody who may make it, on its way to what answers it.

#include <functional>
#include <memory>
#include <string>

#include "controller/cluster/kube/json.h"
#include "controller/dashboard/gate.h"
#include "controller/web/http_message.h"

namespace paceline::dashboard {

struct Call {
  web::HttpRequest request;
  web::HttpRequest::Fields path;                // parameters of its route
  std::function<void(web::HttpAnswer)> answer;  // once, by any thread
  std::string key;                              // of the job, where the path names one
  std::shared_ptr<const kube::Json> object;     // likewise
  Viewer viewer = {};                           // who asks
  std::shared_ptr<Sight> sight = nullptr;       // what he may see; null: all
};

}  // namespace paceline::dashboard
