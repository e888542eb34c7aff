#pragma once

// The dashboard's JSON API, docs/dashboard-api.md: /api/v1 and the page's files. The server's thread calls
// handle(). Everything that a request must prove is checked before anything is done for it (guard.h, gate.h).

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/dashboard/assets.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/call.h"
#include "controller/dashboard/gate.h"
#include "controller/dashboard/job_actions.h"
#include "controller/dashboard/job_questions.h"
#include "controller/dashboard/place.h"
#include "controller/web/http_server.h"
#include "controller/web/router.h"

namespace paceline::dashboard {

struct ApiOptions {
  std::string version;
  std::vector<std::string> hosts;  // by which the server is called; empty: any, of a gate without cookies
  JobActions::Audit audit;         // null: none
  std::span<const Asset> assets;
};

class Api {
 public:
  // `wake`: streams may have more. All outlive it.
  Api(Board& board, Place& place, Gate& gate, ApiOptions options, const Clock& clock,
      std::function<void()> wake);

  void handle(web::HttpRequest request, web::Reply reply);

 private:
  using Handler = std::function<void(Call call)>;
  struct Route {
    Handler handler;
    Need need;  // without the job's names
    std::optional<Action> action;
  };

  std::size_t add(const char* method, const char* path, void (Api::*handler)(Call));
  std::size_t add_route(const char* method, const std::string& path, Handler handler,
                        std::optional<Action> action = std::nullopt);
  void dispatch(Call call);
  void serve(const web::Router::Match& match, Call call);
  // Answers by what the history has of the job that the call names.
  void serve_past(const Route& route, Call call);
  void refuse(const Call& call, std::optional<Action> action, const absl::Status& why) const;
  static Need need_of(const Route& route, const Call& call);
  void open_session(Call call);
  void get_session(Call call);
  void get_jobs(Call call);
  void get_job(Call call);
  void stream(Call call);
  kube::Json session(const Call& call) const;

  Board& board_;
  Place& place_;
  Gate& gate_;
  const ApiOptions options_;
  const std::string epoch_;  // of the board's versions, in events' ids
  web::Router router_;
  std::vector<Route> routes_;
  std::size_t open_session_ = 0;
  JobQuestions questions_;
  JobActions actions_;
};

}  // namespace paceline::dashboard
