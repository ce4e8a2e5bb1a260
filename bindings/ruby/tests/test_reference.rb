# frozen_string_literal: true

require_relative "helper"
require "fileutils"
require "rdoc"

# `ri` finds what there is: every public method of every class, whether it is written in Ruby or in C.
class TestReference < Minitest::Test
  LIB = File.expand_path("../lib", __dir__)
  # What is not for users.
  HIDDEN = %w[Attributes Converting Filter LockGuard MutexGuard OpenFlags].freeze
  # Of every object; and what a Struct defines of itself.
  COMMON = %i[inspect to_s == eql? hash initialize_copy].freeze

  def classes(within = Hashmere)
    found = within.constants(false).map { |name| within.const_get(name) }.select { |it| it.is_a?(Module) && it.name.start_with?("Hashmere::") }
    found.reject { |it| HIDDEN.include?(it.name.split("::")[1]) || it < Hashmere::Error }.flat_map { |it| [it, *classes(it)] }.uniq
  end

  def methods_of(kind)
    struct = kind < Struct ? kind.members.flat_map { |name| [name, :"#{name}="] } : []
    kind.public_instance_methods(false).reject { |name| name.start_with?("_") } - COMMON - struct
  end

  def test_a_missing_library_is_the_last_line
    Dir.mktmpdir do |folder|
      Dir.chdir(folder) do
        clean = { "PKG_CONFIG_PATH" => folder, "GEM_HOME" => nil, "CPATH" => nil, "LIBRARY_PATH" => nil }
        said = IO.popen([clean, RbConfig.ruby, File.expand_path("../ext/hashmere/extconf.rb", __dir__)], err: %i[child out], &:read)
        skip "libhashmere is installed for all users" if $?.success?
        assert_match(/\Alibhashmere and hashmere.h were not found: `make install/, said.lines.last)
      end
    end
  end

  def test_ri_finds_every_method
    Dir.mktmpdir do |folder|
      RDoc::RDoc.new.document(["--ri", "--quiet", "--op", "#{folder}/ri", *Dir["#{LIB}/**/*.rb"]])
      known = RDoc::RI::Store.new("#{folder}/ri") if defined?(RDoc::RI::Store)
      known ||= RDoc::Store.new("#{folder}/ri", :home)
      known.load_cache
      found = classes
      assert_operator found.size, :>, 15
      missing = found.flat_map do |kind|
        documented = known.instance_methods.fetch(kind.name, []) + known.attributes.fetch(kind.name, []).map { |it| it[/\w+$/] }
        (methods_of(kind).map(&:to_s) - documented).map { |name| "#{kind}##{name}" }
      end
      assert_empty missing, "methods that ri does not find"
      documented = known.class_methods.fetch("Hashmere", [])
      assert_empty Hashmere.singleton_methods(false).map(&:to_s).reject { |name| name.start_with?("_") } - documented
    end
  end
end
