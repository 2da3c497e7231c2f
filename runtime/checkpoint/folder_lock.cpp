//===- folder_lock.cpp - One run per checkpoint folder --------------------===//

#include "folder_lock.h"

#include "../core/aside_file.h"
#include "../core/json.h"
#include "genrec_rt/error.h"
#include "manifest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

constexpr const char *kLockFile = "checkpoint.lock";
constexpr size_t kMostHolderBytes = 4096;

std::string hostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "an unknown host";
}

std::string now() {
  std::time_t time = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

/// What the holder wrote; an empty object where that cannot be read.
Json readHolder(int descriptor) {
  std::string text(kMostHolderBytes, ' ');
  ssize_t got = pread(descriptor, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  Json holder = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return holder.is_object() ? holder : Json::object();
}

std::string textOf(const Json &holder, const char *name) {
  return holder.contains(name) && holder[name].is_string() ? holder[name].get<std::string>() : "";
}

std::string describeHolder(const Json &holder) {
  std::string host = textOf(holder, "host"), since = textOf(holder, "since");
  if (!holder.contains("pid") || !holder["pid"].is_number_integer() || host.empty())
    return "another process";
  return "process " + toText(holder["pid"]) + " on " + host +
         (since.empty() ? "" : ", since " + since);
}

int flockRetried(int descriptor, int how) {
  int result;
  do
    result = flock(descriptor, how);
  while (result != 0 && errno == EINTR);
  return result;
}

} // namespace

FolderLock::FolderLock(const std::string &folder) : path(folder + "/" + kLockFile), since(now()) {
  descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throwFileError("open", path);
  if (flockRetried(descriptor, LOCK_EX | LOCK_NB) != 0) {
    int reason = errno;
    Json holder = readHolder(descriptor);
    close(descriptor);
    if (reason == EWOULDBLOCK)
      throw Error(folder + " is being trained into by " + describeHolder(holder),
                  "wait until it has ended, or use another folder");
    throw Error("cannot lock " + path + ": " + std::strerror(reason),
                "two runs in one folder would destroy each other's checkpoints: use a folder of a "
                "file system that has locks");
  }
  Json before = readHolder(descriptor);
  isOurs = before.contains("pid") || lseek(descriptor, 0, SEEK_END) == 0;
  left = textOf(before, "writing");
  if (!isGenerationName(left))
    left.clear();
  write(left); // until it is removed: this process may be killed before
}

FolderLock::~FolderLock() { close(descriptor); }

void FolderLock::setWriting(const std::string &generation) { write(generation); }

void FolderLock::write(const std::string &generation) {
  if (!isOurs)
    return;
  Json holder = {{"pid", getpid()}, {"host", hostName()}, {"since", since}, {"writing", generation}};
  std::string text = toText(holder);
  // Of one length, so that it is replaced in place; a reader that meets half of it knows less.
  text.resize(std::max<size_t>(text.size(), 512), ' ');
  text.back() = '\n';
  // The lock holds whether or not its holder could say so, on a full disk for example.
  (void)!pwrite(descriptor, text.data(), text.size(), 0);
}

bool lockShared(int descriptor) {
  // Where locks cannot be had (a read-only mount), reading goes on without.
  return flockRetried(descriptor, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool lockAlone(int descriptor) {
  return flockRetried(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

} // namespace genrec::rt
