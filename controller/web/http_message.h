#pragma once

// A request as a server got it, and its answer. Values.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace paceline::web {

struct HttpRequest {
  using Fields = std::map<std::string, std::string, std::less<>>;

  std::string method, path;  // GET, /api/v1/jobs; percent signs are undone
  Fields query;              // ?points=100; the first of a name counts
  Fields headers;            // by names in small letters; values of one name are joined by ", "
  std::string body;
  std::string peer;  // whose connection it is (peer.h): the client's, or the proxy's that it comes through

  // Empty where there is none.
  const std::string& header(std::string_view name) const { return find(headers, name); }
  const std::string& parameter(std::string_view name) const { return find(query, name); }

 private:
  static const std::string& find(const Fields& fields, std::string_view name) {
    static const std::string none;
    const auto found = fields.find(name);
    return found == fields.end() ? none : found->second;
  }
};

// An answer that is told bit by bit, for as long as its reader listens. The server's thread alone calls it.
class HttpStream {
 public:
  virtual ~HttpStream() = default;

  struct Piece {
    std::shared_ptr<const std::string> text;  // null: nothing now
    bool last = false;                        // the stream ends behind it
  };
  // Asked when all before is on its way: at once, after HttpServer::waker()(), and several times a second.
  // One that is slow to read is asked less often; it never makes a queue.
  virtual Piece next(TimePoint now) = 0;
};

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<HttpStream> stream;  // null: the body is all
};

}  // namespace paceline::web
