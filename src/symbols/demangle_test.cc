#include "symbols/image.h"

#include <gtest/gtest.h>

namespace unflake {
namespace {

struct Case {
  const char* demangled;
  const char* name;
};

class QualifiedName : public testing::TestWithParam<Case> {};

TEST_P(QualifiedName, Is_without_parameters_and_noise) {
  EXPECT_EQ(qualified_name(GetParam().demangled), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    Names, QualifiedName,
    testing::Values(
        Case{"main", "main"}, Case{"helper.cold", "helper"},
        Case{"Server::push(int)", "Server::push"}, Case{"Server::size() const", "Server::size"},
        Case{"Server::push(int) [clone .cold]", "Server::push"},
        Case{"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
        Case{"std::lock_guard<std::mutex>::lock_guard(std::mutex&)",
             "std::lock_guard<std::mutex>::lock_guard"},
        Case{"void run<int, char>(int, char)", "run<int, char>"},
        Case{"std::vector<int, std::allocator<int> > make<int>()", "make<int>"},
        Case{"std::vector<int, std::allocator<int> >::push_back(int const&)",
             "std::vector<int>::push_back"},
        Case{"f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >)",
             "f"},
        Case{"std::map<std::__cxx11::basic_string<char, std::char_traits<char>, "
             "std::allocator<char> >, int>::clear()",
             "std::map<std::string, int>::clear"},
        Case{"Server::start()::{lambda()#1}::operator()() const", "Server::start::{lambda}"},
        Case{"Server::start()::{lambda()#1}::operator()() const::{lambda(int)#2}::operator()(int) "
             "const",
             "Server::start::{lambda}::{lambda}"},
        Case{"Server::start()::$_0::operator()() const", "Server::start::{lambda}"},
        Case{"main::{lambda()#1}::_FUN()", "main::{lambda}"},
        Case{"run(int)::Local::work(char)", "run::Local::work"},
        Case{"Less::operator()(int, int) const", "Less::operator()"},
        Case{"bool operator< <int>(A<int> const&, A<int> const&)", "operator<<int>"},
        Case{"std::ostream& operator<<(std::ostream&, A const&)", "operator<<"},
        Case{"A::operator->() const", "A::operator->"},
        Case{"A::operator[](unsigned long)", "A::operator[]"},
        Case{"A::operator bool() const", "A::operator bool"},
        Case{"operator new(unsigned long)", "operator new"},
        Case{"operator delete[](void*)", "operator delete[]"},
        Case{"non-virtual thunk to A::f()", "A::f"}, Case{"f[abi:cxx11](int)", "f"},
        Case{"decltype (a+b) add<int>(int, int)", "add<int>"}, Case{"broken(", "broken"},
        Case{"broken<(", "broken<("}, Case{"", ""}));

TEST(Demangle, Knows_the_body_of_a_coroutine) {
  EXPECT_EQ(
      qualified_name(demangle("_ZN3net7connectEPZNS_7connectEiE23_ZN3net7connectEi.Frame.actor")),
      "net::connect");
}

TEST(Demangle, Leaves_alone_what_is_not_mangled) {
  EXPECT_EQ(demangle("pthread_create"), "pthread_create");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
}

TEST(Demangle, Gives_the_parameters_too) {
  EXPECT_EQ(demangle("_ZN6Server4pushEi"), "Server::push(int)");
}

TEST(Demangle, Leaves_alone_what_is_absurdly_long) {
  const std::string name = "_Z100000" + std::string(100000, 'a') + "v";
  EXPECT_EQ(demangle(name.c_str()), name);
}

}  // namespace
}  // namespace unflake
