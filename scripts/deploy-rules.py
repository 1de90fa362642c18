"""The rules of deploy/ that no linter knows; prints each that is broken."""

import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).parent.parent
# After the drain: requests under way, then the database (SHUTDOWN of src/app.rs, twice).
STOPPING = 20
broken = []


def rule(holds, sentence):
    if not holds:
        broken.append(sentence)


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|min)", str(text)).groups()
    return int(number) * (1 if unit == "s" else 60)


def read(path):
    return (ROOT / path).read_text()


def check_stopping():
    said = re.search(r"SHUTDOWN: Duration = Duration::from_secs\((\d+)\)", read("src/app.rs"))
    rule(said and 2 * int(said[1]) == STOPPING, "scripts/deploy-rules.py: STOPPING is not that of src/app.rs")


def check_dockerfile():
    text = read("deploy/Dockerfile")
    stages = re.split(r"(?m)^FROM ", text)[1:]
    rule(len(stages) == 2, "Dockerfile: it builds in one stage and ships another")
    last = stages[-1]
    user = re.search(r"(?m)^USER (\d+)", last)
    rule(user and user[1] != "0", "Dockerfile: the user is a number, and not root's")
    check = re.search(r"(?ms)^HEALTHCHECK .*?CMD (\[.*?\])", last)
    rule(check and '"healthcheck"' in check[1], "Dockerfile: the program itself checks its health, without a shell")
    rule(re.search(r"(?m)^ENTRYPOINT \[", last), "Dockerfile: no shell stands between SIGTERM and the program")
    version = re.search(r'rust-version = "(.*?)"', read("Cargo.toml"))[1]
    rule(f"rust:{version}-" in text, f"Dockerfile: it builds with Rust {version}, as Cargo.toml says")


def check_compose():
    services = yaml.safe_load(read("deploy/compose.yml"))["services"]
    for name in ("migrate", "leasehold"):
        service = services[name]
        rule(service.get("read_only") is True, f"compose {name}: the root is read-only")
        rule(service.get("cap_drop") == ["ALL"], f"compose {name}: no capability")
    serve = services["leasehold"]
    drain = seconds(serve["environment"].get("LEASEHOLD_DRAIN", "0s"))
    rule(seconds(serve.get("stop_grace_period", "10s")) > drain + STOPPING, "compose: it has the time to stop")
    rule(all(str(port).startswith("127.0.0.1:") for port in serve["ports"]), "compose: only this machine reaches it")
    waits = serve["depends_on"]["migrate"]["condition"]
    rule(waits == "service_completed_successfully", "compose: it migrates before it serves")


def check_unit():
    unit = read("deploy/systemd/leasehold.service")
    drain = re.search(r"LEASEHOLD_DRAIN=(\S+)", unit)
    stop = int(re.search(r"(?m)^TimeoutStopSec=(\d+)$", unit)[1])
    rule(stop > seconds(drain[1] if drain else "0s") + STOPPING, "systemd: it has the time to stop")
    rule(re.search(r"(?m)^LimitNOFILE=\d{5,}$", unit), "systemd: it may open files for its sockets")


def check_pod(name, pod):
    rule(pod.get("automountServiceAccountToken") is False, f"{name}: no token of the cluster")
    rule(pod["securityContext"].get("runAsNonRoot") is True, f"{name}: not root")
    for container in pod["containers"]:
        context = container["securityContext"]
        rule(context.get("readOnlyRootFilesystem") is True, f"{name}: the root is read-only")
        rule(context.get("allowPrivilegeEscalation") is False, f"{name}: no new rights")
        rule(context["capabilities"] == {"drop": ["ALL"]}, f"{name}: no capability")
        rule("memory" in container["resources"]["limits"], f"{name}: memory is limited")
        rule(not container["image"].endswith(":latest") and ":" in container["image"], f"{name}: a version is named")
        for variable in container["env"]:
            is_secret = variable["name"] in ("DATABASE_URL", "LEASEHOLD_SERVER_KEYS")
            rule(not is_secret or "valueFrom" in variable, f"{name}: {variable['name']} is in a secret")


def check_kubernetes():
    all_of_them = {}
    for path in sorted((ROOT / "deploy/kubernetes").glob("*.yml")):
        for thing in yaml.safe_load_all(path.read_text()):
            all_of_them[thing["kind"]] = thing["spec"]
    check_pod("Job", all_of_them["Job"]["template"]["spec"])
    deployment = all_of_them["Deployment"]
    pod = deployment["template"]["spec"]
    check_pod("Deployment", pod)
    rule(deployment["replicas"] >= 2, "Deployment: two instances")
    container = pod["containers"][0]
    drain = {v["name"]: v.get("value") for v in container["env"]}["LEASEHOLD_DRAIN"]
    grace = pod["terminationGracePeriodSeconds"]
    rule(grace > seconds(drain) + STOPPING, "Deployment: it has the time to drain and to stop")
    ready = container["readinessProbe"]
    unready = ready["periodSeconds"] * ready["failureThreshold"] + ready["timeoutSeconds"]
    rule(seconds(drain) > unready, "Deployment: it drains until it is known to be unready")
    rule(ready["httpGet"]["path"] == "/readyz", "Deployment: ready by /readyz")
    rule(container["livenessProbe"]["httpGet"]["path"] == "/healthz", "Deployment: alive by /healthz")
    labels = deployment["template"]["metadata"]["labels"].items()
    job_labels = all_of_them["Job"]["template"]["metadata"]["labels"].items()
    budget = all_of_them["PodDisruptionBudget"]
    rule(budget["minAvailable"] < deployment["replicas"], "PodDisruptionBudget: a node can be emptied")
    selectors = {
        "Deployment": deployment["selector"]["matchLabels"],
        "Service": all_of_them["Service"]["selector"],
        "PodDisruptionBudget": budget["selector"]["matchLabels"],
        "NetworkPolicy": all_of_them["NetworkPolicy"]["podSelector"]["matchLabels"],
    }
    for kind, selector in selectors.items():
        rule(selector.items() <= labels, f"{kind}: it means the pods of the deployment")
        is_for_all = kind == "NetworkPolicy"
        rule((selector.items() <= job_labels) == is_for_all, f"{kind}: the migration is meant by the policy alone")
    ports = {port["name"] for port in container["ports"]}
    rule(all_of_them["Service"]["ports"][0]["targetPort"] in ports, "Service: the port is one of the pod")


for check in (check_stopping, check_dockerfile, check_compose, check_unit, check_kubernetes):
    check()
for sentence in broken:
    print(f"broken: {sentence}", file=sys.stderr)
sys.exit(1 if broken else 0)
