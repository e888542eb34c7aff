#pragma once

// A worker of a world, spoken for by the test, frame by frame.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <span>
#include <vector>

#include "runtime/pserver/frame.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/row_messages.h"
#include "servers_world.h"

namespace paceline::pserver {

class Stranger {
 public:
  // Joins the first server.
  Stranger(ServersWorld& world, const WorldSpec& spec, int rank = 1)
      : rank_(rank),
        socket_(world.stranger(rank)[0].sockets[0].get()),
        copies_(world.stranger(rank)[0].sockets[1].get()) {
    Buffer message;
    encode(JoinMessage{spec.elements, spec.slice_bytes, spec.medium == Medium::kSharedMemory, 0, 0,
                       fingerprint(spec.tables)},
           message);
    send({.kind = FrameKind::kJoin}, message);
  }
  void send(FrameHeader header, Bytes payload) {
    header.rank = header.rank < 0 ? rank_ : header.rank;
    write(socket_, header, payload);
  }
  // By the connection of snapshots.
  void send_beside(FrameHeader header) {
    header.rank = header.rank < 0 ? rank_ : header.rank;
    write(copies_, header, {});
  }
  template <typename Message>
  void say(const FrameHeader& header, const Message& message) {
    Buffer payload;
    encode(message, payload);
    send(header, payload);
  }
  void announce(FrameKind kind, const RowsMessage& parts) {
    Buffer message;
    encode(parts, message);
    send({.kind = kind}, message);
  }
  void commit(Unit unit) {
    Buffer message;
    encode(CommitMessage(), message);
    send({.kind = FrameKind::kCommit, .number = unit}, message);
  }
  // What is pushed before its turn belongs to no unit: with the turn it is forgotten. Returns the turn's
  // unit.
  Unit wait_for_turn() {
    TurnResult turn;
    read_turn(turn);
    return turn.unit;
  }
  // Its part of a snapshot's dense state.
  void wait_for_copy() {
    Buffer payload;
    wait_for(copies_, FrameKind::kCopied, payload);
  }
  // What that server waits for, as it tells a worker that is a stranger and need not have joined.
  static void ask(ServersWorld& world, int rank, int server, WaitingMessage& said) {
    const int socket = world.stranger(rank)[static_cast<std::size_t>(server)].sockets[0].get();
    write(socket, {.kind = FrameKind::kAsk, .rank = rank}, {});
    Buffer payload;
    ASSERT_NO_FATAL_FAILURE(wait_for(socket, FrameKind::kWaiting, payload));
    ASSERT_TRUE(decode(payload, said).ok());
  }
  // As that server, when it is asked by that worker.
  static void answer(ServersWorld& world, int server_rank, int worker, const WaitingMessage& answer) {
    const int socket = world.stranger(server_rank)[static_cast<std::size_t>(worker)].sockets[0].get();
    Buffer payload;
    ASSERT_NO_FATAL_FAILURE(wait_for(socket, FrameKind::kAsk, payload));
    encode(answer, payload);
    write(socket, {.kind = FrameKind::kWaiting, .rank = server_rank}, payload);
  }
  // As that server, to that worker.
  static void say_as_server(ServersWorld& world, int server_rank, int worker, FrameHeader header,
                            Bytes payload) {
    header.rank = server_rank;
    write(world.stranger(server_rank)[static_cast<std::size_t>(worker)].sockets[0].get(), header, payload);
  }
  // The next frame of that kind.
  FrameHeader hear(FrameKind kind, Buffer& payload) {
    FrameHeader header;
    wait_for(socket_, kind, payload, &header);
    return header;
  }
  // Waits for a frame of that kind, as that server, from that worker.
  static void hear(ServersWorld& world, int server_rank, int worker, FrameKind kind) {
    Buffer payload;
    wait_for(world.stranger(server_rank)[static_cast<std::size_t>(worker)].sockets[0].get(), kind, payload);
  }
  // UNIX sockets: what is sent to it from here on fails, but nothing wakes the sender before.
  void hear_nothing_more() { ASSERT_EQ(::shutdown(socket_, SHUT_RD), 0); }
  template <typename Value>
  void values(FrameKind kind, const std::vector<Value>& values) {
    send({.kind = kind}, std::as_bytes(std::span(values)));
  }

 private:
  void read_turn(TurnResult& turn) {
    Buffer payload;
    ASSERT_NO_FATAL_FAILURE(wait_for(socket_, FrameKind::kTurn, payload));
    ASSERT_TRUE(decode(payload, turn).ok());
  }
  // The payload of the next frame of that kind.
  static void wait_for(int socket, FrameKind kind, Buffer& payload, FrameHeader* found = nullptr) {
    for (FrameKind came = FrameKind::kJoin; came != kind;) {
      std::array<std::byte, kFrameBytes> head{};
      ASSERT_NO_FATAL_FAILURE(read(socket, head));
      const auto header = decode_frame(head);
      ASSERT_TRUE(header.ok()) << header.status();
      payload.resize(header->length);
      ASSERT_NO_FATAL_FAILURE(read(socket, payload));
      came = header->kind;
      if (found != nullptr) *found = *header;
    }
  }
  static void write(int socket, FrameHeader header, Bytes payload) {
    header.generation = Generation{3};
    header.length = payload.size();
    Buffer bytes(kFrameBytes);
    encode(header, std::span<std::byte, kFrameBytes>(bytes.data(), kFrameBytes));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    for (Bytes rest = bytes; !rest.empty();) {
      pollfd writable{.fd = socket, .events = POLLOUT, .revents = 0};
      ASSERT_EQ(::poll(&writable, 1, 60'000), 1) << "it is not read";
      const ssize_t sent = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0) return;  // the server has lost this worker
      rest = rest.subspan(static_cast<std::size_t>(sent));
    }
  }
  static void read(int socket, std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      pollfd readable{.fd = socket, .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&readable, 1, 60'000), 1) << "nothing came";
      const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
      ASSERT_GT(got, 0);
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
  }

  const int rank_, socket_, copies_;
};

}  // namespace paceline::pserver
